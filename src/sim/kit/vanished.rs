//! Whether a server is chosen that takes no requests, while others do.
//!
//! The core never sends a request there: a pick of such a server is an opinion that is lost, and a plan that names only
//! such servers is none. Besides others they do no harm in a plan, which may outlive their absence.

use super::question::{Question, Shape};
use super::scene::Scene;
use super::subject::{Answer, Hook, Stopped, Subject};
use super::{Seen, Verdict};
use crate::policy::{Plan, ServerIndex, State};

const SERVERS: usize = 10;

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let offered = subject.offered(&[Hook::Pick, Hook::Plan]);
    let mut seen = Vec::new();
    if offered.contains(&Hook::Pick) {
        seen.extend(picks(subject)?);
    }
    if offered.contains(&Hook::Plan) {
        seen.extend(plans(subject)?);
    }
    if offered.is_empty() {
        seen.push(Seen::nothing("it chooses no server"));
    }
    Ok(seen)
}

/// Tables of one backend in the course of a bad day. Who takes no requests has none, which makes it tempting.
fn day() -> Vec<Scene> {
    let mut busy = Scene::equal(SERVERS);
    for server in &mut busy.servers {
        server.in_flight = 5;
    }
    let mut some = busy
        .clone()
        .with([0, 7], State::Down)
        .with([2], State::Maintenance)
        .with([4], State::Draining);
    some.servers[6].weight = 0;
    for server in some.servers.iter_mut().filter(|server| !server.is_usable()) {
        server.in_flight = 0;
        server.latency = Some(100);
    }
    let mut last = busy.clone().with(0..SERVERS, State::Down);
    last.servers[5].state = State::Ready;
    vec![
        busy.clone().named("10 servers that take requests"),
        some.clone().named("10 servers of which 5 take no requests"),
        busy.clone()
            .without(9)
            .without(3)
            .named("the same when two were removed"),
        some.without(5)
            .named("the same when 5 take no requests and one was removed"),
        busy.named("the same when all are back"),
        last.named("10 servers of which one takes requests"),
    ]
}

/// What was named that takes no requests.
#[derive(Default)]
struct Named {
    first: u64,
    second: u64,
    all: u64,
    /// Where it was seen first.
    situation: Option<String>,
}

fn picks(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let mut named = Named::default();
    let scenes = day();
    let mut policy = subject.policy(&scenes[0].name)?;
    for scene in &scenes {
        subject.show(&mut *policy, scene)?;
        for key in 0..subject.effort.requests / 4 {
            let question = Question::new(subject.offers(), Shape::Key(key), u64::from(key));
            let avoid = key
                .is_multiple_of(8)
                .then_some(ServerIndex(key as u16 % scene.servers.len() as u16));
            if let Some(pick) = subject.pick(&mut *policy, &question, avoid, &scene.name)? {
                named.note(scene, pick.first, pick.second);
            }
        }
    }
    if named.all == 0 {
        return Ok(vec![Seen::nothing("it never had an opinion").part("in picks")]);
    }
    Ok(vec![named.seen().part("in picks")])
}

impl Named {
    fn note(&mut self, scene: &Scene, first: ServerIndex, second: Option<ServerIndex>) {
        let is_wrong = |server: ServerIndex| scene.has_usable() && !scene.is_usable(server);
        let (wrong, wrong_too) = (is_wrong(first), second.is_some_and(is_wrong));
        self.all += 1;
        self.first += u64::from(wrong);
        self.second += u64::from(wrong_too);
        if wrong || (wrong_too && self.situation.is_none()) {
            self.situation.get_or_insert_with(|| scene.name.clone());
        }
    }

    fn seen(self) -> Seen {
        let Named {
            first, second, all, ..
        } = self;
        let verdict = match (first, second) {
            (0, 0) => Verdict::Ok,
            (0, _) => Verdict::Warning,
            _ => Verdict::Failed,
        };
        let figure =
            format!("named as the first choice {first} times, as the second {second}, in {all} picks");
        let situation = self
            .situation
            .unwrap_or_else(|| "a day on which servers go and come back".to_owned());
        Seen::new(verdict, figure, situation)
    }
}

fn plans(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let scenes = day();
    let mut planner = subject.planner(&scenes[0].name)?;
    let (mut made, mut idle) = (0, None);
    for scene in &scenes {
        let answer = subject.plan(&mut *planner, Hook::Plan, scene)?;
        let Answer::Plan(Some(plan)) = answer else {
            continue;
        };
        made += 1;
        if names_nobody_usable(&plan, scene) {
            idle.get_or_insert(&scene.name);
        }
    }
    let seen = match (made, idle) {
        (0, _) => Seen::nothing("it never had an opinion"),
        (_, Some(scene)) => Seen::new(
            Verdict::Warning,
            "a plan names only servers that take no requests: nothing follows from it",
            scene,
        ),
        (_, None) => Seen::new(
            Verdict::Ok,
            format!("each of {made} plans names servers that take requests"),
            "a day on which servers go and come back",
        ),
    };
    Ok(vec![seen.part("in plans")])
}

fn names_nobody_usable(plan: &Plan, scene: &Scene) -> bool {
    let mut members = plan.tiers.iter().flat_map(|tier| &tier.members);
    let useful = members.any(|member| member.weight > 0 && scene.is_usable(member.server));
    !plan.tiers.is_empty() && !useful
}
