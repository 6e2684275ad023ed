//! The generations a worker uses: the current one, and older ones until their last exchange ends.
//!
//! A worker looks at the published generation once per turn. Exchanges count on a plain local number, not on an
//! `Arc`: no shared cache line is touched per request.

use super::{Current, Published};
use std::sync::Arc;

/// A worker's generations.
#[derive(Debug)]
pub(super) struct Tables {
    published: arc_swap::Cache<Arc<Published>, Arc<Current>>,
    held: Vec<Option<Held>>,
    current: u32,
}

#[derive(Debug)]
struct Held {
    generation: Arc<Current>,
    users: u32,
}

impl Tables {
    pub(super) fn new(published: Arc<Published>) -> Tables {
        let mut published = arc_swap::Cache::new(published);
        let generation = published.load().clone();
        Tables {
            published,
            held: vec![Some(Held { generation, users: 0 })],
            current: 0,
        }
    }

    /// Takes up a newer generation, if one was published; hands out the former and its place.
    pub(super) fn refresh(&mut self) -> Option<(u32, Arc<Current>)> {
        let newest = self.published.load();
        let current = self.held[self.current as usize].as_ref().expect("a place in use");
        if Arc::ptr_eq(newest, &current.generation) {
            return None;
        }
        let held = Held {
            generation: newest.clone(),
            users: 0,
        };
        let former = self.current;
        let former_generation = self.entry(former).generation.clone();
        self.current = match self.held.iter().position(Option::is_none) {
            Some(free) => {
                self.held[free] = Some(held);
                free as u32
            }
            None => {
                self.held.push(Some(held));
                self.held.len() as u32 - 1
            }
        };
        Some((former, former_generation))
    }

    /// Drops a former generation that nobody uses.
    pub(super) fn drop_if_unused(&mut self, place: u32) {
        if place != self.current && self.entry(place).users == 0 {
            self.held[place as usize] = None;
        }
    }

    /// The place of the current generation.
    pub(super) fn current(&self) -> u32 {
        self.current
    }

    /// The generation at a place that is in use.
    pub(super) fn get(&self, place: u32) -> &Arc<Current> {
        &self.entry(place).generation
    }

    /// One more user.
    pub(super) fn hold(&mut self, place: u32) {
        self.held[place as usize].as_mut().expect("a place in use").users += 1;
    }

    /// One user less.
    pub(super) fn release(&mut self, place: u32) {
        self.held[place as usize].as_mut().expect("a place in use").users -= 1;
        self.drop_if_unused(place);
    }

    fn entry(&self, place: u32) -> &Held {
        self.held[place as usize].as_ref().expect("a place in use")
    }
}
