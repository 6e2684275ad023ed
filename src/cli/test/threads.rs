//! Many threads, one order: works are taken by whoever is free, and their answers handed on in the order of the works.
//!
//! The caller's thread does no work itself. It hears of every end at once, for a line of progress, and of every answer when all
//! before it have been handed on.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// What the caller's thread hears.
pub(super) enum Step<'a, Work, Answer> {
    /// That many works have ended, this one last.
    Ended(usize, &'a Work),
    /// The next answer in order.
    Next(Answer),
}

/// Runs all works on at most that many threads. An error of `hear` ends the run after what is being worked on.
pub(super) fn run_in_order<Work: Sync, Answer: Send, Error>(
    works: &[Work],
    threads: NonZeroUsize,
    run: impl Fn(&Work) -> Answer + Sync,
    mut hear: impl FnMut(Step<'_, Work, Answer>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (next, run) = (&AtomicUsize::new(0), &run);
    std::thread::scope(|scope| {
        let (answers, ended) = mpsc::channel();
        for _ in 0..threads.get().min(works.len()) {
            let answers = answers.clone();
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(work) = works.get(index) else { return };
                    if answers.send((index, run(work))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(answers);
        hand_on(works, ended, &mut hear)
    })
}

fn hand_on<Work, Answer, Error>(
    works: &[Work],
    ended: mpsc::Receiver<(usize, Answer)>,
    hear: &mut impl FnMut(Step<'_, Work, Answer>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut waiting: Vec<Option<Answer>> = works.iter().map(|_| None).collect();
    let mut handed_on = 0;
    for (count, (index, answer)) in (1..).zip(ended) {
        waiting[index] = Some(answer);
        hear(Step::Ended(count, &works[index]))?;
        while let Some(answer) = waiting.get_mut(handed_on).and_then(Option::take) {
            handed_on += 1;
            hear(Step::Next(answer))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn answers_come_in_order_whoever_ends_first() {
        let works: Vec<usize> = (0..40).collect();
        // The first work ends only after the second: both are in flight, in whatever order they were taken.
        let (met, second_done) = (Barrier::new(2), Barrier::new(2));
        let (mut ended, mut answers) = (Vec::new(), Vec::new());
        let run = |work: &usize| {
            if *work < 2 {
                met.wait();
            }
            if *work == 0 {
                second_done.wait();
            }
            *work * 10
        };
        let done = run_in_order(&works, threads(4), run, |step| {
            match step {
                Step::Ended(count, work) => {
                    ended.push(*work);
                    assert_eq!(count, ended.len());
                    if *work == 1 {
                        assert!(answers.is_empty());
                        second_done.wait();
                    }
                }
                Step::Next(answer) => answers.push(answer),
            }
            Ok::<(), ()>(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(answers, works.iter().map(|it| it * 10).collect::<Vec<_>>());
        ended.sort_unstable();
        assert_eq!(ended, works);
    }

    #[test]
    fn an_error_ends_the_run() {
        let works: Vec<u8> = (0..100).collect();
        let run_once = AtomicUsize::new(0);
        let count = |_: &u8| run_once.fetch_add(1, Ordering::Relaxed);
        let ended = run_in_order(&works, threads(1), count, |_| Err("enough"));
        assert_eq!(ended, Err("enough"));
        assert_eq!(run_in_order(&[0; 0], threads(3), count, |_| Err("none")), Ok(()));
    }
}
