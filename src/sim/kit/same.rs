//! Whether the same questions are answered alike: by two new instances, with the same draws at the same times.
//!
//! An instance may remember what it was asked: both are asked the same from the beginning.

use super::question::{Question, STRANGE, Shape};
use super::scene::{self, Scene};
use super::subject::{Answer, Hook, Stopped, Subject};
use super::{Seen, Verdict};
use std::time::Duration;

/// Requests in each scene.
const REQUESTS: u32 = 20;

/// A question, and what was answered.
type Line = (Hook, String, Answer);

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    // Whoever has learnt from the clock is told the same times.
    let began = subject.now + Duration::from_secs(60);
    let (one, two) = (script(subject, began)?, script(subject, began)?);
    let different = one.iter().zip(&two).filter(|(one, two)| one != two);
    let count = different.clone().count();
    let all = one.len();
    let Some(((hook, situation, answer), (.., other))) = different.clone().next() else {
        let figure = format!("two instances gave the same {all} answers");
        return Ok(vec![Seen::new(
            Verdict::Ok,
            figure,
            "all situations, the same draws and times",
        )]);
    };
    let figure = format!(
        "{count} of {all} answers differ between two instances; the first is a {}: {answer:?} and {other:?}",
        hook.word()
    );
    Ok(vec![Seen::new(Verdict::Failed, figure, situation)])
}

fn script(subject: &mut Subject<'_>, began: Duration) -> Result<Vec<Line>, Stopped> {
    subject.now = began;
    let mut lines = Vec::new();
    let scenes = scene::all(subject.effort.seed);
    requests(subject, &scenes, &mut lines)?;
    plans(subject, &scenes, &mut lines)?;
    Ok(lines)
}

fn requests(subject: &mut Subject<'_>, scenes: &[Scene], lines: &mut Vec<Line>) -> Result<(), Stopped> {
    let hooks = subject.offered(&Hook::OF_REQUESTS);
    if hooks.is_empty() {
        return Ok(());
    }
    let mut policy = subject.policy("a new instance")?;
    for scene in scenes {
        subject.show(&mut *policy, scene)?;
        for (at, &hook) in (0..REQUESTS).flat_map(|at| hooks.iter().map(move |hook| (at, hook))) {
            let shape = STRANGE.get(at as usize).copied().unwrap_or(Shape::Key(at % 7));
            let question = Question::new(subject.offers(), shape, u64::from(at));
            let answer = subject.ask(&mut *policy, hook, &question, scene)?;
            lines.push((hook, scene.name.clone(), answer));
        }
    }
    Ok(())
}

fn plans(subject: &mut Subject<'_>, scenes: &[Scene], lines: &mut Vec<Line>) -> Result<(), Stopped> {
    let hooks = subject.offered(&Hook::OF_PLANS);
    if hooks.is_empty() {
        return Ok(());
    }
    let mut planner = subject.planner("a new instance")?;
    for scene in scenes {
        for &hook in &hooks {
            let answer = subject.plan(&mut *planner, hook, scene)?;
            lines.push((hook, scene.name.clone(), answer));
        }
    }
    Ok(())
}
