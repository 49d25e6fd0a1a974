//! Who gets how many tokens in a step, sequence by sequence: vLLM V1's scheduler with several steps composed
//! and not yet out.

use crate::cost::StepShape;
use crate::engine::config::{LlmServer, SchedulingPolicy};
use crate::engine::sequence::{NIL, Pool, RunningList, Sequence, Slot, State, final_context};
use crate::engine::waiting::WaitingQueue;
use crate::rng::Keyed;
use crate::units::{Blocks, SimTime, Tokens};
use crate::workload::Request;

/// One sequence's part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub slot: Slot,
    /// Tokens of KV before it, and scheduled on top.
    cached: Tokens,
    tokens: Tokens,
    kind: Kind,
    /// [`Track::losses`] when it was composed.
    losses: u32,
    /// Set when the step ends: accepted drafts, and tokens that reach the client.
    accepted: u32,
    pub emits: Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Chunk,
    /// The prompt's last chunk: a token is sampled.
    LastChunk,
    /// The last token and its drafts.
    Decode,
}

/// What a sequence needs here beyond [`Sequence`], of which `generated` counts the tokens that are out,
/// `known` the ones its prefill computes and `computed` those whose KV is computed by the steps composed
/// so far, drafts as if all were accepted.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// Tokens it has KV slots for.
    slots: Tokens,
    /// Steps composed and not out that hold a part of it; of these, the ones that sample.
    under_way: u32,
    pending: u32,
    /// Times it lost its blocks.
    losses: u32,
    /// All its tokens are out.
    complete: bool,
}

/// Queue, running list and KV ledger of a staged replica.
#[derive(Clone, Debug)]
pub(super) struct Scheduler<'a> {
    server: &'a LlmServer,
    acceptance: Keyed,
    drafts: Tokens,
    lookahead: Tokens,
    ahead: u32,
    pub pool: Pool,
    tracks: Vec<Track>,
    waiting: WaitingQueue,
    pub running: RunningList,
    free_blocks: Blocks,
    arrivals: u64,
    /// Preempted at the last composition.
    pub preempted: Vec<Slot>,
}

impl<'a> Scheduler<'a> {
    pub fn new(server: &'a LlmServer, acceptance: Keyed) -> Self {
        let speculation = server.speculation.as_ref();
        Self {
            acceptance,
            drafts: speculation.map_or(0, |speculation| speculation.num_speculative_tokens),
            lookahead: speculation.map_or(0, |speculation| speculation.lookahead),
            ahead: server.ahead(),
            pool: Pool::default(),
            tracks: Vec::new(),
            waiting: WaitingQueue::new(server.batcher.scheduling_policy),
            running: RunningList::new(),
            free_blocks: server.kv.blocks,
            arrivals: 0,
            preempted: Vec::new(),
            server,
        }
    }

    pub fn waiting_len(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub fn blocks_used(&self) -> Blocks {
        self.server.kv.blocks - self.free_blocks
    }

    /// Whether the request could ever run here. Drafts of two steps, none of them accepted, and what the
    /// draft model writes may lie beyond its own tokens.
    pub fn accepts(&self, request: &Request) -> bool {
        let max_model_len = u64::from(self.server.batcher.max_model_len);
        if u64::from(request.input_tokens) + u64::from(request.output_tokens) > max_model_len {
            return false;
        }
        let longest = final_context(request);
        let beyond = 2 * u64::from(self.drafts) + u64::from(self.lookahead);
        let slots = (u64::from(longest) + beyond).min(max_model_len) as Tokens;
        let kv = &self.server.kv;
        u64::from(kv.fixed_blocks(longest)) + u64::from(kv.blocks_for(slots)) <= u64::from(kv.blocks)
    }

    /// Puts a request that [`Scheduler::accepts`] into the queue.
    pub fn enqueue(&mut self, request: Request) {
        let priority = self.server.batcher.class_priority[usize::from(request.class)];
        let fixed = self.server.kv.fixed_blocks(final_context(&request));
        let slot = self.pool.insert(Sequence::new(request, priority, self.arrivals, fixed));
        self.arrivals += 1;
        let index = slot as usize;
        if index >= self.tracks.len() {
            self.tracks.resize(index + 1, Track::default());
        }
        self.tracks[index] = Track::default();
        self.waiting.push(slot, &self.pool[slot]);
    }

    /// Composes a step into `rows`, which is empty.
    pub fn compose(&mut self, rows: &mut Vec<Row>) {
        self.preempted.clear();
        let budget = self.schedule_running(rows);
        if self.preempted.is_empty() {
            self.admit(rows, budget);
        }
    }

    /// The running list in order, preempting where blocks run out. Returns what is left of the budget.
    fn schedule_running(&mut self, rows: &mut Vec<Row>) -> Tokens {
        let mut budget = self.server.batcher.max_num_batched_tokens;
        let mut slot = self.running.head;
        while slot != NIL && budget > 0 {
            // Settled before any preemption: tokens that a victim gives back are for those behind.
            let tokens = self.wanted(slot).min(budget);
            if tokens > 0 {
                let had = self.tracks[slot as usize].slots;
                let slots = self.pool[slot].computed + tokens + self.lookahead;
                let slots = slots.min(self.server.batcher.max_model_len).max(had);
                let kv = &self.server.kv;
                let needed = kv.blocks_for(slots) - kv.blocks_for(had);
                while needed > self.free_blocks {
                    let victim = self.victim();
                    budget += self.unschedule(rows, victim);
                    self.preempt(victim);
                    if victim == slot {
                        return budget;
                    }
                }
                self.free_blocks -= needed;
                self.tracks[slot as usize].slots = slots;
                self.add(rows, slot, tokens);
                budget -= tokens;
            }
            slot = self.pool[slot].next;
        }
        budget
    }

    /// Tokens that a running sequence would have in a step: none if its last token will be out by then, or
    /// if it must see one first that is on its way.
    fn wanted(&self, slot: Slot) -> Tokens {
        let (sequence, track) = (&self.pool[slot], &self.tracks[slot as usize]);
        if self.is_finishing(slot) || track.pending > self.ahead {
            return 0;
        }
        if sequence.computed < sequence.known {
            return sequence.known - sequence.computed;
        }
        // vLLM's limit: the token after the last of the context is never computed.
        let room = (self.server.batcher.max_model_len - 1).saturating_sub(sequence.computed);
        (1 + self.drafts).min(room)
    }

    /// Whether the steps under way bring its last token in any case.
    fn is_finishing(&self, slot: Slot) -> bool {
        let sequence = &self.pool[slot];
        sequence.generated + self.tracks[slot as usize].pending >= sequence.request.output_tokens
    }

    fn add(&mut self, rows: &mut Vec<Row>, slot: Slot, tokens: Tokens) {
        let (sequence, track) = (&mut self.pool[slot], &mut self.tracks[slot as usize]);
        let cached = sequence.computed;
        sequence.computed += tokens;
        let kind = if sequence.computed < sequence.known {
            Kind::Chunk
        } else if cached < sequence.known {
            Kind::LastChunk
        } else {
            Kind::Decode
        };
        track.under_way += 1;
        track.pending += u32::from(kind != Kind::Chunk);
        rows.push(Row { slot, cached, tokens, kind, losses: track.losses, accepted: 0, emits: 0 });
    }

    /// Takes a sequence out of the step that is being composed; the tokens that this sets free.
    fn unschedule(&mut self, rows: &mut Vec<Row>, slot: Slot) -> Tokens {
        let Some(at) = rows.iter().rposition(|row| row.slot == slot) else { return 0 };
        let row = rows.remove(at);
        let track = &mut self.tracks[slot as usize];
        track.under_way -= 1;
        track.pending -= u32::from(row.kind != Kind::Chunk);
        row.tokens
    }

    /// Who loses its blocks first: the last admitted or, under priority, the least urgent and latest.
    fn victim(&self) -> Slot {
        if self.server.batcher.scheduling_policy == SchedulingPolicy::Fcfs {
            return self.running.tail;
        }
        let key = |slot: Slot| (self.pool[slot].priority, self.pool[slot].arrival);
        let mut worst = self.running.head;
        let mut slot = worst;
        while slot != NIL {
            if key(slot) > key(worst) {
                worst = slot;
            }
            slot = self.pool[slot].next;
        }
        worst
    }

    /// Takes place and blocks from `slot`; unless its last token is on its way it goes back to the queue.
    fn preempt(&mut self, slot: Slot) {
        self.preempted.push(slot);
        self.running.unlink(&mut self.pool, slot);
        self.free_blocks += self.held(slot);
        let finishing = self.is_finishing(slot);
        let track = &mut self.tracks[slot as usize];
        track.slots = 0;
        track.losses += 1;
        let sequence = &mut self.pool[slot];
        sequence.computed = 0;
        if finishing {
            sequence.state = State::FinishingEvicted;
        } else {
            sequence.state = State::Waiting;
            sequence.preemptions += 1;
            self.waiting.push_preempted(slot, &self.pool[slot]);
        }
    }

    fn held(&self, slot: Slot) -> Blocks {
        self.pool[slot].fixed_blocks + self.server.kv.blocks_for(self.tracks[slot as usize].slots)
    }

    /// Waiting requests, while seats, budget and blocks allow.
    fn admit(&mut self, rows: &mut Vec<Row>, mut budget: Tokens) {
        let batcher = &self.server.batcher;
        while budget > 0 && self.running.len < batcher.max_num_seqs {
            let Some(slot) = self.waiting.peek() else { return };
            if self.tracks[slot as usize].under_way > 0 {
                // The step for which it lost its blocks is still in a stage.
                return;
            }
            let sequence = &mut self.pool[slot];
            sequence.known = sequence.request.input_tokens + sequence.generated;
            let chunk = sequence.known.min(budget);
            if chunk < sequence.known && !batcher.enable_chunked_prefill {
                return;
            }
            let gate = if batcher.full_prompt_gate { sequence.known } else { chunk };
            let watermark = if self.running.len > 0 { batcher.watermark_blocks } else { 0 };
            let (kv, fixed) = (&self.server.kv, sequence.fixed_blocks);
            if fixed + kv.blocks_for(gate) + watermark > self.free_blocks {
                return;
            }
            self.free_blocks -= fixed + kv.blocks_for(chunk);
            sequence.state = State::Decoding;
            self.waiting.pop();
            self.running.push_back(&mut self.pool, slot);
            self.tracks[slot as usize].slots = chunk;
            self.add(rows, slot, chunk);
            budget -= chunk;
        }
    }

    /// What a step holds, and its prompt tokens. The context of a decode is the one it would have if all
    /// drafts under way were accepted.
    pub fn shape(&self, rows: &[Row], window: Tokens) -> (StepShape, Tokens) {
        let mut shape = StepShape::default();
        let mut prefill_tokens = 0;
        for row in rows {
            if row.kind == Kind::Decode {
                let context = row.cached + row.tokens;
                shape.tokens += row.tokens;
                shape.sequences += 1;
                shape.sampled += row.tokens;
                shape.decode_context += u64::from(context);
                shape.decode_window_context += u64::from(context.min(window));
            } else {
                shape.add_chunk(row.cached, row.tokens, row.kind == Kind::LastChunk, window);
                prefill_tokens += row.tokens;
            }
        }
        (shape, prefill_tokens)
    }

    /// Decides what the rows of a step that ends bring; how many tokens in all.
    pub fn draw(&self, rows: &mut [Row]) -> u32 {
        let mut emitted = 0;
        for row in rows {
            let sequence = &self.pool[row.slot];
            let left = sequence.request.output_tokens - sequence.generated;
            if row.kind == Kind::Chunk || left == 0 {
                continue;
            }
            if let (Kind::Decode, Some(speculation)) = (row.kind, &self.server.speculation) {
                let (index, drafts) = (sequence.request.index, row.tokens - 1);
                row.accepted = speculation.accepted(self.acceptance, index, sequence.generated, drafts);
            }
            row.emits = left.min(1 + row.accepted);
            emitted += row.emits;
        }
        emitted
    }

    /// Applies what a row brings at `now`; whether the request is complete with it.
    pub fn output(&mut self, row: &Row, now: SimTime) -> bool {
        let (sequence, track) = (&mut self.pool[row.slot], &mut self.tracks[row.slot as usize]);
        track.under_way -= 1;
        track.pending -= u32::from(row.kind != Kind::Chunk);
        if row.emits == 0 {
            return false;
        }
        if row.kind == Kind::Decode && row.losses == track.losses {
            sequence.computed -= row.tokens - 1 - row.accepted;
        }
        sequence.generated += row.emits;
        sequence.first_token = sequence.first_token.min(now);
        sequence.last_token = now;
        if sequence.generated < sequence.request.output_tokens {
            return false;
        }
        track.complete = true;
        match sequence.state {
            State::FinishingEvicted => {}
            State::Waiting => self.waiting.remove(row.slot),
            _ => {
                self.free_blocks += self.held(row.slot);
                self.running.unlink(&mut self.pool, row.slot);
            }
        }
        true
    }

    /// Gives the slot of a complete sequence back once no step under way holds a part of it.
    pub fn let_go(&mut self, slot: Slot) {
        let track = &self.tracks[slot as usize];
        if track.complete && track.under_way == 0 {
            self.pool.remove(slot);
        }
    }
}
