//! Calibration data: hardware, models, engine defaults and fitted profiles, read and validated.
//!
//! Everything under `calibration/` is embedded in the binary; a file of the same name on disk wins, so
//! a GPU or a model is added, or a figure corrected, without a build. Files are read when they are asked
//! for: a broken one spoils only the question that needs it.

mod dtype;
mod engine;
mod error;
mod files;
mod hardware;
mod hf_config;
mod hf_keys;
mod model;
mod model_file;
mod names;
mod price;
mod profile;
mod record;
mod scheduler;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use dtype::Dtype;
pub use engine::EngineDefaults;
pub use error::CatalogError;
pub use hardware::{AllReduce, ExpertKernels, Hardware, Kernels};
pub use model::{Attention, LayerGroup, Mlp, Model, Parameters, WeightBytes};
pub use price::{Price, age_months};
pub use profile::{ModelKind, Profile, ProfileValues, Standing, Weights};
pub use record::FitRecord;
pub use scheduler::{KvShare, Scheduler, SglangScheduler, StaticReserve, TensorRtLlmScheduler};

use toml::de::DeValue;

use crate::nearest::{did_you_mean, nearest_product};
use engine::{EngineTable, OR_NEWEST};
use files::File;

type Files = BTreeMap<String, File>;

/// The folders of calibration data.
pub const FOLDERS: [&str; 4] = ["hardware", "models", "engines", "profiles"];

/// All calibration data, embedded and on disk.
#[derive(Clone, Debug)]
pub struct Catalog {
    hardware: Arc<Files>,
    models: Arc<Files>,
    engines: Arc<Files>,
    profiles: Arc<Files>,
    /// Embedded, then on disk: a later one wins, GPU by GPU.
    prices: Arc<Vec<File>>,
    /// Published figures of servers, as measurement sets.
    measured: Arc<Files>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Catalog {
    /// The embedded data, overlaid by files under `dir` (usually `./calibration`) if given and present.
    #[must_use]
    pub fn new(dir: Option<&Path>) -> Self {
        let load = |kind| Arc::new(files::load(kind, dir));
        Self {
            hardware: load("hardware"),
            models: load("models"),
            engines: load("engines"),
            profiles: load("profiles"),
            prices: Arc::new(files::load_one("prices.toml", dir)),
            measured: load("measured/serving"),
        }
    }

    /// Names of all GPUs, sorted.
    #[must_use]
    pub fn hardware_names(&self) -> Vec<String> {
        self.hardware.keys().cloned().collect()
    }
    /// Names of all models, sorted.
    #[must_use]
    pub fn model_names(&self) -> Vec<String> {
        self.models.keys().cloned().collect()
    }
    /// (engine, versions in the table, ascending). An engine whose batcher is not built has none.
    #[must_use]
    pub fn engine_versions(&self) -> Vec<(String, Vec<String>)> {
        let versions = |file| EngineTable::read(file).map(|table| table.versions()).unwrap_or_default();
        self.engines.iter().map(|(name, file)| (name.clone(), versions(file))).collect()
    }
    /// Names of all profiles, sorted.
    #[must_use]
    pub fn profile_names(&self) -> Vec<String> {
        self.profiles.keys().cloned().collect()
    }

    /// Measurement sets of published figures, sorted by name: path and text.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn measured_sets(&self) -> Result<Vec<(&str, &str)>, CatalogError> {
        self.measured.values().map(|file| Ok((file.path.as_str(), file.text()?))).collect()
    }

    /// A GPU by name.
    ///
    /// # Errors
    /// Unknown name (with the nearest), or an invalid file.
    pub fn hardware(&self, name: &str) -> Result<Arc<Hardware>, CatalogError> {
        let key = name.to_lowercase();
        let file = self.hardware.get(&key).ok_or_else(|| unknown("GPU", name, &self.hardware))?;
        let price = price::find(&self.prices, &key)?;
        hardware::read(&key, file, price).map(Arc::new)
    }

    /// A model by short name, Hugging Face id (or an alias of one), or path to a `config.json` (or to a
    /// folder that holds one) relative to `base`. Returns the weight dtype that the name's variant sets,
    /// if any.
    ///
    /// # Errors
    /// Unknown name (with the nearest), or a file that cannot be used.
    pub fn model(&self, name: &str, base: &Path) -> Result<(Arc<Model>, Option<Dtype>), CatalogError> {
        if let Some(path) = config_path(name, base) {
            let file = File::read(&path);
            let model = hf_config::read(&config_name(&path), &file.path, file.text()?)?;
            return Ok((Arc::new(model), None));
        }
        let (key, dtype) = names::canonical(name);
        if let Some(file) = self.models.get(&key) {
            return Ok((Arc::new(model_file::read(&key, file)?.0), dtype));
        }
        for (stem, file) in self.models.iter() {
            let (model, aliases) = model_file::read(stem, file)?;
            if aliases.iter().any(|alias| names::canonical(alias).0 == key) {
                return Ok((Arc::new(model), dtype));
            }
        }
        Err(unknown("model", name, &self.models))
    }

    /// Defaults of an engine version on a GPU; `version = None` is the newest.
    ///
    /// # Errors
    /// Unknown engine or version, or a version refused with its reason.
    pub fn engine(
        &self,
        name: &str,
        version: Option<&str>,
        gpu: &Hardware,
    ) -> Result<EngineDefaults, CatalogError> {
        let file = self.engines.get(name).ok_or_else(|| unknown("engine", name, &self.engines))?;
        let table = EngineTable::read(file)?;
        if let Some(asked) = version.filter(|asked| table.is_beyond(asked)) {
            self.refuse_version_of_another(name, &table, asked)?;
        }
        table.defaults(version, gpu)
    }

    /// A version that is newer than all that are known of `engine`, and known of another, is the other's.
    fn refuse_version_of_another(
        &self,
        engine: &str,
        table: &EngineTable<'_>,
        asked: &str,
    ) -> Result<(), CatalogError> {
        for (other, file) in self.engines.iter().filter(|(other, _)| *other != engine) {
            if EngineTable::read(file)?.has(asked) {
                return Err(CatalogError::Refused {
                    what: format!("{engine} {asked}"),
                    reason: format!(
                        "{asked} is a version of {other}; versions known of {engine}: {}; {OR_NEWEST}",
                        table.versions().join(", ")
                    ),
                });
            }
        }
        Ok(())
    }

    /// The profile called `name`, a path to one, or with `auto` the best one for GPU, engine, its
    /// version (`None`: the newest) and weights: a fitted one if there is one, else the GPU's kernel values, marked
    /// estimated. The profile returned holds the values for `weights` only.
    ///
    /// # Errors
    /// Unknown name, an invalid file, or a profile for another GPU or engine, or without values for `weights`: who
    /// names one does not want another.
    pub fn profile(
        &self,
        name: &str,
        gpu: &Hardware,
        engine: &str,
        version: Option<&str>,
        weights: impl Into<Weights>,
        base: &Path,
    ) -> Result<Profile, CatalogError> {
        let weights = weights.into();
        if name == "auto" {
            return self.best_profile(gpu, engine, version, weights);
        }
        if name == profile::estimate_name(&gpu.name, engine) && !self.profiles.contains_key(name) {
            return Ok(gpu.estimated_profile(engine, weights));
        }
        if let (false, Some(other)) = (self.profiles.contains_key(name), self.estimates(name)?.first()) {
            let there_are = self.profiles_for(gpu, engine);
            let reason = format!("it is the estimate for {} on {}; {there_are}", other.engine, other.gpu);
            return Err(CatalogError::Refused {
                what: format!("{engine} on {} by the profile `{name}`", gpu.name),
                reason,
            });
        }
        let (file, profiles) = self.named_profile(name, base).map_err(|error| match error {
            CatalogError::NotFound { kind, name, .. } => {
                CatalogError::NotFound { kind, name, hint: self.profiles_for(gpu, engine) }
            }
            other => other,
        })?;
        if let Some(other) =
            profiles.iter().find(|profile| profile.gpu != gpu.name || profile.engine != engine)
        {
            return Err(self.profile_of_another(&file, other, gpu, engine));
        }
        let has = profile::tables(&profiles);
        if let Some(found) = profile::best(profiles, version, weights) {
            return Ok(found);
        }
        let instead = self.best_profile(gpu, engine, version, weights)?;
        let under = version.map_or(String::new(), |version| format!(" under {engine} {version}"));
        Err(CatalogError::NoValues {
            profile: name.to_owned(),
            wanted: format!("{} weights of {}{under}", weights.dtype.name(), weights.kind.name()),
            has,
            instead: format!("\"auto\" takes {} ({})", instead.name, instead.standing.name()),
        })
    }

    /// All tables of values of the profile `name`, which the catalog has or a file, in its order.
    ///
    /// # Errors
    /// Unknown name, or an invalid file.
    pub fn tables_of_profile(&self, name: &str, base: &Path) -> Result<Vec<Profile>, CatalogError> {
        Ok(self.named_profile(name, base)?.1)
    }

    /// The error that `profile`, of `file`, is for another GPU or engine than was asked for, at the line that says so.
    fn profile_of_another(
        &self,
        file: &File,
        profile: &Profile,
        gpu: &Hardware,
        engine: &str,
    ) -> CatalogError {
        let key = if profile.gpu == gpu.name { "engine" } else { "gpu" };
        let message = format!(
            "it is a profile for {} on {}, not for {engine} on {}; {}",
            profile.engine,
            profile.gpu,
            gpu.name,
            self.profiles_for(gpu, engine)
        );
        file.invalid_in(key, &message)
    }

    /// The tables of a profile that the catalog has, or a file, and the file.
    fn named_profile(&self, name: &str, base: &Path) -> Result<(File, Vec<Profile>), CatalogError> {
        if let Some(file) = self.profiles.get(name) {
            return Ok((file.clone(), self.read_profile(name, file)?));
        }
        if name.ends_with(".toml") {
            let path = base.join(name);
            let file = File::read(&path);
            let profiles = profile::read(&files::stem(&path), &file)?;
            return Ok((file, profiles));
        }
        Err(unknown("profile", name, &self.profiles))
    }

    /// The GPU that the profile `name` is of; `None` for `auto`.
    ///
    /// # Errors
    /// Unknown name, or an invalid file.
    pub fn gpu_of_profile(&self, name: &str, base: &Path) -> Result<Option<String>, CatalogError> {
        if name == "auto" {
            return Ok(None);
        }
        if let Some(estimate) = self.estimates(name)?.into_iter().next() {
            return Ok(Some(estimate.gpu));
        }
        let (_, profiles) = self.named_profile(name, base)?;
        Ok(profiles.into_iter().next().map(|profile| profile.gpu))
    }

    /// The profile called `name`, or at a path to one, as its file has it: one for each table of values.
    ///
    /// # Errors
    /// Unknown name, or an invalid file.
    pub fn profile_tables(&self, name: &str) -> Result<Vec<Profile>, CatalogError> {
        match self.profiles.get(name) {
            Some(file) => self.read_profile(name, file),
            None if name.ends_with(".toml") => {
                let path = Path::new(name);
                profile::read(&files::stem(path), &File::read(path))
            }
            None => Err(unknown("profile", name, &self.profiles)),
        }
    }

    /// Which profiles there are for an engine on a GPU, in words.
    fn profiles_for(&self, gpu: &Hardware, engine: &str) -> String {
        let holds = |name: &str, file: &File| {
            let profiles = self.read_profile(name, file).unwrap_or_default();
            profiles.first().is_some_and(|one| one.gpu == gpu.name && one.engine == engine)
        };
        let fitted =
            self.profiles.iter().filter(|(name, file)| holds(name, file)).map(|(name, _)| name.clone());
        let names: Vec<String> = fitted
            .chain([profile::estimate_name(&gpu.name, engine)])
            .map(|name| format!("`{name}`"))
            .collect();
        format!("for {engine} on {}: {}; `auto` takes the best", gpu.name, names.join(", "))
    }

    /// The estimate that outputs call `name` (`l40s-vllm-estimated`), for every weight dtype and kind of model;
    /// empty where `name` is none.
    ///
    /// # Errors
    /// An invalid file of its GPU.
    pub fn estimates(&self, name: &str) -> Result<Vec<Profile>, CatalogError> {
        let pairs = self.hardware.keys().flat_map(|gpu| self.engines.keys().map(move |engine| (gpu, engine)));
        let Some((gpu, engine)) = pairs.into_iter().find(|(g, e)| profile::estimate_name(g, e) == name)
        else {
            return Ok(Vec::new());
        };
        let gpu = self.hardware(gpu)?;
        let all = ModelKind::ALL.into_iter().flat_map(|kind| Dtype::ALL.map(|dtype| Weights { dtype, kind }));
        Ok(all.map(|weights| gpu.estimated_profile(engine, weights)).collect())
    }

    fn best_profile(
        &self,
        gpu: &Hardware,
        engine: &str,
        version: Option<&str>,
        weights: Weights,
    ) -> Result<Profile, CatalogError> {
        let mut candidates = Vec::new();
        for (name, file) in self.profiles.iter() {
            let profiles = self.read_profile(name, file)?;
            candidates.extend(profiles.into_iter().filter(|one| one.gpu == gpu.name && one.engine == engine));
        }
        let best = profile::best(candidates, version, weights);
        Ok(best.unwrap_or_else(|| gpu.estimated_profile(engine, weights)))
    }

    /// A profile of the catalog. One whose GPU or engine is none, or another than its name says, would never be
    /// used where it was meant to be, and nobody would be told.
    fn read_profile(&self, name: &str, file: &File) -> Result<Vec<Profile>, CatalogError> {
        let profiles = profile::read(name, file)?;
        let Some(Profile { gpu, engine, .. }) = profiles.first() else {
            return Ok(profiles);
        };
        let wrong = |key: &str, value: &str, message: String| {
            let is_it = |found: &DeValue<'_>| matches!(found, DeValue::String(text) if text == value);
            Err(file.invalid_at(key, is_it, &message))
        };
        for (key, value, kind, known) in
            [("gpu", gpu, "GPU", &self.hardware), ("engine", engine, "engine", &self.engines)]
        {
            if !known.contains_key(value) {
                return wrong(key, value, unknown(kind, value, known).to_string());
            }
        }
        // `h100-sxm-vllm`, `h100-sxm-vllm-mine`: the longest name of a GPU, then an engine's.
        let after = |whole: &'_ str, part: &str| {
            let rest = whole.strip_prefix(part)?;
            rest.is_empty().then_some("").or_else(|| rest.strip_prefix('-')).map(str::to_owned)
        };
        let named_gpu =
            self.hardware.keys().filter(|gpu| after(name, gpu).is_some()).max_by_key(|gpu| gpu.len());
        let rest = named_gpu.and_then(|gpu| after(name, gpu)).unwrap_or_default();
        let named_engine = self.engines.keys().find(|engine| after(&rest, engine).is_some());
        for (key, value, named) in [("gpu", gpu, named_gpu), ("engine", engine, named_engine)] {
            if let Some(named) = named.filter(|named| *named != value) {
                let message = format!("its {key} is `{value}`, its name says `{named}`: correct one of them");
                return wrong(key, value, message);
            }
        }
        Ok(profiles)
    }

    /// Every file that cannot be used: its folder, the name it would have, and why.
    #[must_use]
    pub fn unusable(&self) -> Vec<(&'static str, String, CatalogError)> {
        type Read<'a> = &'a dyn Fn(&str, &File) -> Option<CatalogError>;
        let kinds: [(&'static str, &Files, Read); 4] = [
            ("hardware", &self.hardware, &|name, file| hardware::read(name, file, None).err()),
            ("models", &self.models, &|name, file| model_file::read(name, file).err()),
            ("engines", &self.engines, &|_, file| EngineTable::read(file).err()),
            ("profiles", &self.profiles, &|name, file| self.read_profile(name, file).err()),
        ];
        let of_kind = |(kind, files, read): (&'static str, &Files, Read)| -> Vec<_> {
            files.iter().filter_map(|(name, file)| Some((kind, name.clone(), read(name, file)?))).collect()
        };
        kinds.into_iter().flat_map(of_kind).collect()
    }
}

/// The error for a name that is not in `files`, with those that were probably meant.
fn unknown(kind: &'static str, name: &str, files: &Files) -> CatalogError {
    /// As many as a message can tell.
    const FEW: usize = 20;
    let (listed, word) = match kind {
        "GPU" => ("hardware", name.to_owned()),
        "model" => ("models", names::canonical(name).0),
        "engine" => ("engines", name.to_owned()),
        _ => ("profiles", name.to_owned()),
    };
    let also = |key: &str, file: &File| match kind {
        "GPU" => hardware::read(key, file, None).map_or_else(|_| String::new(), |gpu| gpu.title),
        _ => String::new(),
    };
    let names = files.iter().map(|(key, file)| (key.as_str(), also(key, file)));
    let all = || files.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut hint = match did_you_mean(&nearest_product(&word, names)) {
        Some(near) => format!("{near} `knee list {listed}` shows all"),
        None if files.len() <= FEW => format!("there are: {}", all()),
        None => format!("`knee list {listed}` shows those that there are"),
    };
    if kind == "model" {
        hint.push_str("; the path of a config.json does too");
    }
    CatalogError::NotFound { kind, name: name.to_owned(), hint }
}

/// The `config.json` that `name` is a path to, if it is one: a name that ends in `.json`, or a folder
/// that holds a `config.json`.
fn config_path(name: &str, base: &Path) -> Option<PathBuf> {
    let path = base.join(name);
    if path.extension().is_some_and(|extension| extension == "json") {
        return Some(path);
    }
    let inside = path.join("config.json");
    inside.is_file().then_some(inside)
}

/// What a model read from `path` is called: the file's stem, or its folder's name for `config.json`.
fn config_name(path: &Path) -> String {
    let stem = files::stem(path);
    let folder = path.parent().and_then(Path::file_name).filter(|_| stem == "config");
    folder.map_or(stem, |folder| folder.to_string_lossy().into_owned())
}
