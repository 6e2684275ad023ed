//! The thread that writes the access log: takes what the workers handed over, formats it, writes it in large pieces.
//!
//! It sleeps until a worker rings, writes what is there, and naps before it looks again, so that under load it makes
//! few large writes and a worker hardly ever has to wake it. A write that fails loses the lines it did not take and
//! counts them; the next ones are tried again, so a full disk or a broken pipe heals by itself. A write that is stuck
//! holds up this thread only: the lanes fill up, and drop and count (see [`super::batch`]).
//!
//! Files are opened by whoever asks for them, so that a reload learns at once that a path does not work, and the old
//! file stays in use until the new one is open.

use super::batch::{Batcher, Bell, Lane};
use super::encoding::decode;
use super::format::Format;
use super::messages::{Level, Messages};
use super::outlet::{NAP, Outlet, PATIENCE, Target};
use super::snapshot::LogCounts;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std::time::Duration;

/// A write is made as soon as so many bytes are formatted; 64 KiB.
pub const WRITE_SIZE: usize = 64 * 1024;
/// The access log at work. Dropping it writes what is left, for at most [`PATIENCE`].
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    orders: Sender<Order>,
    place: Mutex<(Format, Target)>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    lanes: Mutex<Lanes>,
    bell: Arc<Bell>,
    written: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Lanes {
    open: Vec<Arc<Lane>>,
    /// Records dropped on lanes whose worker is gone.
    dropped_before: u64,
}

#[derive(Debug)]
enum Order {
    Set(Format, Outlet),
    Stop,
}

impl Log {
    /// Opens the target and starts the thread.
    pub fn start(format: Format, target: Target, messages: Messages) -> io::Result<Log> {
        let outlet = Outlet::open(&target)?;
        Log::begin(format, target, outlet, messages)
    }

    fn begin(format: Format, target: Target, outlet: Outlet, messages: Messages) -> io::Result<Log> {
        let shared = Arc::new(Shared::default());
        let (orders, inbox) = unbounded();
        let (ending, ended) = bounded(0);
        let mut writer = Writer {
            shared: Arc::clone(&shared),
            outlet,
            format,
            messages,
            lanes: Vec::new(),
            taken: Vec::new(),
            text: Vec::with_capacity(WRITE_SIZE),
            lines: 0,
        };
        let thread = thread::Builder::new().name("log".into()).spawn(move || {
            writer.run(&inbox);
            drop(ending);
        })?;
        shared.bell.wakes(thread.thread().clone());
        Ok(Log {
            shared,
            orders,
            place: Mutex::new((format, target)),
            ended,
        })
    }

    /// A lane for one worker. It closes when the worker drops it.
    pub fn batcher(&self) -> Batcher {
        let lane = Arc::new(Lane::default());
        self.shared.lanes.lock().open.push(Arc::clone(&lane));
        Batcher::new(lane, Arc::clone(&self.shared.bell))
    }

    /// Goes on with this form and target, opened anew. On an error the old ones stay.
    pub fn set(&self, format: Format, target: Target) -> io::Result<()> {
        self.order(Order::Set(format, Outlet::open(&target)?));
        *self.place.lock() = (format, target);
        Ok(())
    }

    /// Opens the target again, after somebody moved the file away. On an error the old one stays.
    pub fn reopen(&self) -> io::Result<()> {
        let (format, target) = self.place.lock().clone();
        self.set(format, target)
    }

    /// What became of the records so far.
    pub fn counts(&self) -> LogCounts {
        let lanes = self.shared.lanes.lock();
        LogCounts {
            written: self.shared.written.load(Ordering::Relaxed),
            dropped: lanes.dropped_before + lanes.open.iter().map(|lane| lane.dropped()).sum::<u64>(),
            failed: self.shared.failed.load(Ordering::Relaxed),
        }
    }

    /// Writes what is left and ends the thread, for at most `patience`. After the workers have ended.
    pub fn stop(self, patience: Duration) -> LogCounts {
        self.order(Order::Stop);
        let _ = self.ended.recv_timeout(patience);
        self.counts()
    }

    fn order(&self, order: Order) {
        // The thread is gone only after a stop; there is nobody to obey then.
        let _ = self.orders.send(order);
        self.shared.bell.ring();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.order(Order::Stop);
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

/// What the thread owns.
struct Writer {
    shared: Arc<Shared>,
    outlet: Outlet,
    format: Format,
    messages: Messages,
    /// The open lanes while they are emptied; empty otherwise, so that a worker's end shows.
    lanes: Vec<Arc<Lane>>,
    /// Records taken from one lane.
    taken: Vec<u8>,
    /// Lines that wait for their write.
    text: Vec<u8>,
    lines: u64,
}

impl Writer {
    fn run(&mut self, inbox: &Receiver<Order>) {
        loop {
            if !self.shared.bell.silence() {
                thread::park();
                continue;
            }
            self.empty_lanes();
            for order in inbox.try_iter() {
                match order {
                    Order::Set(format, outlet) => {
                        self.format = format;
                        self.outlet = outlet;
                    }
                    Order::Stop => return self.empty_lanes(),
                }
            }
            thread::sleep(NAP);
        }
    }

    fn empty_lanes(&mut self) {
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.extend_from_slice(&self.shared.lanes.lock().open);
        let mut closed = false;
        for lane in &lanes {
            // The list's and the one in hand.
            closed |= Arc::strong_count(lane) == 2;
            self.empty(lane);
        }
        self.write();
        lanes.clear();
        self.lanes = lanes;
        if closed {
            self.forget_closed();
        }
    }

    fn empty(&mut self, lane: &Lane) {
        let mut taken = std::mem::take(&mut self.taken);
        let records = lane.take(&mut taken);
        let before = self.lines;
        for record in decode(&taken) {
            self.format.write(&record, &mut self.text);
            self.lines += 1;
            if self.text.len() >= WRITE_SIZE {
                self.write();
            }
        }
        debug_assert!(self.lines <= before + records);
        self.taken = taken;
    }

    fn write(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let (written, result) = self.outlet.write(&self.text);
        let written = written.min(self.lines);
        let failed = self.lines - written;
        self.shared.written.fetch_add(written, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed, Ordering::Relaxed);
        if let Err(error) = result {
            self.messages.say(
                Level::Error,
                "access log not written",
                &[("lines", &failed), ("error", &error)],
            );
        }
        self.text.clear();
        self.lines = 0;
    }

    /// A lane found closed now may have had its last batch after it was emptied: only an empty one goes.
    fn forget_closed(&mut self) {
        let mut lanes = self.shared.lanes.lock();
        let Lanes { open, dropped_before } = &mut *lanes;
        open.retain(|lane| {
            let keep = Arc::strong_count(lane) > 1 || {
                // Behind whatever its worker did before it let go.
                fence(Ordering::Acquire);
                !lane.is_empty()
            };
            if !keep {
                *dropped_before += lane.dropped();
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::super::testing::collecting;
    use super::super::testing::example_record as example;
    use super::super::testing::{Folder, LONG, wait_until};
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    fn start(path: &Path) -> Log {
        Log::start(Format::Json, Target::File(path.into()), collecting().0).unwrap()
    }

    fn log(batcher: &mut Batcher, status: u16) {
        batcher.push(&Record { status, ..example() });
        batcher.flush();
    }

    fn statuses(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let status = |line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["status"]
                .as_u64()
                .unwrap()
        };
        text.lines().map(status).collect()
    }

    #[test]
    fn all_workers_records_arrive_each_in_order() {
        let folder = Folder::new("order");
        let path = folder.file("access.log");
        let access = start(&path);
        thread::scope(|scope| {
            for worker in 1..=3 {
                let mut batcher = access.batcher();
                scope.spawn(move || {
                    for number in 0..500 {
                        log(&mut batcher, worker * 1000 + number);
                    }
                });
            }
        });
        assert_eq!(
            access.stop(LONG),
            LogCounts {
                written: 1500,
                dropped: 0,
                failed: 0
            }
        );
        let statuses = statuses(&path);
        for worker in 1..=3u64 {
            let of_worker: Vec<_> = statuses
                .iter()
                .filter(|status| **status / 1000 == worker)
                .copied()
                .collect();
            assert_eq!(
                of_worker,
                (worker * 1000..worker * 1000 + 500).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_line_arrives_without_a_second_one_to_push_it() {
        let folder = Folder::new("alone");
        let path = folder.file("access.log");
        let access = start(&path);
        let mut batcher = access.batcher();
        for number in 1..4 {
            log(&mut batcher, number);
            wait_until("written", || access.counts().written == u64::from(number));
        }
        assert_eq!(statuses(&path), [1, 2, 3]);
    }

    #[test]
    fn a_moved_file_is_opened_again_and_no_line_is_lost() {
        let folder = Folder::new("reopen");
        let (path, moved) = (folder.file("access.log"), folder.file("access.log.1"));
        let access = start(&path);
        let mut batcher = access.batcher();
        log(&mut batcher, 1);
        wait_until("written", || access.counts().written == 1);
        std::fs::rename(&path, &moved).unwrap();
        log(&mut batcher, 2);
        wait_until("written", || access.counts().written == 2);
        access.reopen().unwrap();
        let mut later = 0;
        wait_until("in the new file", || {
            log(&mut batcher, 3);
            later += 1;
            std::fs::metadata(&path).is_ok_and(|about| about.len() > 0)
        });
        drop(batcher);
        assert_eq!(access.stop(LONG).written, 2 + later);
        let (old, new) = (statuses(&moved), statuses(&path));
        assert_eq!(old[..2], [1, 2]);
        assert_eq!((old.len() + new.len()) as u64, 2 + later);
    }

    #[test]
    fn a_target_that_cannot_be_opened_leaves_the_old_one() {
        let folder = Folder::new("refused");
        let path = folder.file("access.log");
        let access = start(&path);
        assert!(
            access
                .set(Format::Human, Target::File(folder.file("no/such/folder")))
                .is_err()
        );
        let mut batcher = access.batcher();
        log(&mut batcher, 7);
        drop(batcher);
        access.stop(LONG);
        assert_eq!(statuses(&path), [7]);
    }

    #[test]
    fn a_full_disk_is_counted_and_told_and_holds_nobody_up() {
        let (messages, sink) = collecting();
        let access = Log::start(Format::Human, Target::File("/dev/full".into()), messages.clone()).unwrap();
        let mut batcher = access.batcher();
        for status in 0..300 {
            log(&mut batcher, status);
        }
        assert_eq!(batcher.dropped(), 0);
        wait_until("refused", || access.counts().failed == 300);
        let folder = Folder::new("healed");
        let path = folder.file("access.log");
        access.set(Format::Json, Target::File(path.clone())).unwrap();
        let mut later = 0;
        wait_until("written", || {
            log(&mut batcher, 42);
            later += 1;
            access.counts().written > 0
        });
        drop(batcher);
        let counts = access.stop(LONG);
        assert_eq!((counts.written + counts.failed, counts.dropped), (300 + later, 0));
        assert_eq!(statuses(&path), vec![42; counts.written as usize]);
        messages.flush(LONG);
        assert!(
            sink.text().contains(" error access log not written lines="),
            "{}",
            sink.text()
        );
    }

    #[test]
    fn a_stuck_reader_costs_records_but_every_one_is_counted() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let outlet = Outlet::from(OwnedFd::from(pipe));
        let access = Log::begin(Format::Json, Target::Stdout, outlet, collecting().0).unwrap();
        let mut batcher = access.batcher();
        let mut pushed = 0;
        while batcher.dropped() == 0 {
            log(&mut batcher, 200);
            pushed += 1;
        }
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            reader
                .read_to_end(&mut text)
                .map(|_| memchr::memchr_iter(b'\n', &text).count() as u64)
        });
        drop(batcher);
        let counts = access.stop(LONG);
        assert_eq!(counts.written + counts.dropped, pushed);
        assert!(counts.dropped > 0);
        assert_eq!(reading.join().unwrap().unwrap(), counts.written);
    }

    #[test]
    fn a_worker_that_leaves_is_forgotten_with_its_drops_kept() {
        let folder = Folder::new("gone");
        let access = start(&folder.file("access.log"));
        let mut batcher = access.batcher();
        let mut other = access.batcher();
        for _ in 0..super::super::batch::BATCH_MAX / 100 {
            batcher.push(&example());
        }
        let dropped = batcher.dropped();
        assert!(dropped > 0);
        drop(batcher);
        wait_until("forgotten", || {
            log(&mut other, 1);
            access.shared.lanes.lock().open.len() == 1
        });
        assert_eq!(access.counts().dropped, dropped);
    }
}
