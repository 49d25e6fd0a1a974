//! What a scenario names elsewhere (catalog entries, traces, length files), each looked up once per
//! document whatever the number of sweep points.
//!
//! Only successes are kept, for the user may mend a file. A document and its clones are always resolved
//! against the same catalog, so its entries need not be told apart by it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::{Catalog, CatalogError, Dtype, EngineDefaults, Hardware, Model, Profile, Weights};
use crate::disk;
use crate::units::Tokens;
use crate::workload::{Trace, TraceError, parse_pairs, parse_quantiles, trace};

#[derive(Debug, Default)]
pub(super) struct Lookups {
    traces: Cache<PathBuf, Arc<Trace>>,
    pairs: Cache<PathBuf, Arc<Vec<(Tokens, Tokens)>>>,
    quantiles: Cache<PathBuf, Arc<Vec<(f64, f64)>>>,
    /// By folder and name: the name may be a relative path.
    models: Cache<(PathBuf, String), (Arc<Model>, Option<Dtype>)>,
    hardware: Cache<String, Arc<Hardware>>,
    /// By engine, version and GPU.
    engines: Cache<(String, Option<String>, String), EngineDefaults>,
    /// By folder, profile, GPU, engine with its version, and weights.
    profiles: Cache<(PathBuf, String, String, String, Weights), Profile>,
}

#[derive(Debug)]
struct Cache<K, V>(Mutex<BTreeMap<K, V>>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Cache<K, V> {
    fn get<E>(&self, key: K, look_up: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        // A panic elsewhere cannot have left a half-made entry behind.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(&key) {
            return Ok(value.clone());
        }
        let value = look_up(&key)?;
        known.insert(key, value.clone());
        Ok(value)
    }
}

impl Lookups {
    pub fn trace(&self, base: &Path, file: &str) -> Result<Arc<Trace>, String> {
        self.traces.get(base.join(file), |path| parsed(path, file, trace::parse))
    }

    pub fn pairs(&self, base: &Path, file: &str) -> Result<Arc<Vec<(Tokens, Tokens)>>, String> {
        self.pairs.get(base.join(file), |path| parsed(path, file, parse_pairs))
    }

    pub fn quantiles(&self, base: &Path, file: &str) -> Result<Arc<Vec<(f64, f64)>>, String> {
        self.quantiles.get(base.join(file), |path| parsed(path, file, parse_quantiles))
    }

    pub fn model(
        &self,
        catalog: &Catalog,
        base: &Path,
        name: &str,
    ) -> Result<(Arc<Model>, Option<Dtype>), CatalogError> {
        self.models.get((base.to_path_buf(), name.to_owned()), |_| catalog.model(name, base))
    }

    pub fn hardware(&self, catalog: &Catalog, name: &str) -> Result<Arc<Hardware>, CatalogError> {
        self.hardware.get(name.to_owned(), |name| catalog.hardware(name))
    }

    pub fn engine(
        &self,
        catalog: &Catalog,
        name: &str,
        version: Option<&str>,
        gpu: &Hardware,
    ) -> Result<EngineDefaults, CatalogError> {
        let key = (name.to_owned(), version.map(str::to_owned), gpu.name.clone());
        self.engines.get(key, |_| catalog.engine(name, version, gpu))
    }

    pub fn profile(
        &self,
        catalog: &Catalog,
        base: &Path,
        name: &str,
        gpu: &Hardware,
        engine: &EngineDefaults,
        weights: Weights,
    ) -> Result<Profile, CatalogError> {
        let served = format!("{} {}", engine.engine, engine.version);
        let key = (base.to_path_buf(), name.to_owned(), gpu.name.clone(), served, weights);
        self.profiles
            .get(key, |_| catalog.profile(name, gpu, &engine.engine, Some(&engine.version), weights, base))
    }

    /// Every GPU of the catalog that can be read.
    pub fn all_hardware(&self, catalog: &Catalog) -> Vec<Arc<Hardware>> {
        let names = catalog.hardware_names();
        names.iter().filter_map(|name| self.hardware(catalog, name).ok()).collect()
    }
}

fn parsed<T>(
    path: &Path,
    name: &str,
    parse: impl Fn(&str, &str) -> Result<T, TraceError>,
) -> Result<Arc<T>, String> {
    let text =
        disk::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(name, &text).map(Arc::new).map_err(|error| error.to_string())
}
