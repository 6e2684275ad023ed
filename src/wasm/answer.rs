//! What a guest answered, checked: nothing leaves the host that does not exist.

use super::contract::{admit, balance_pick, balance_plan, classify, reuse, reuse_plan, route};
use crate::policy::{
    CLASSES, CONNECTIONS_MAX, Fault, Fresh, Given, Member, OFFSETS, Pick, Plan, PoolWish, Preference,
    Priority, RETRY_AFTER_MAX, Rejection, Routed, Selector, ServerIndex, Spill, Standing, Target, Tier,
    Verdict, WishedSharing, check_wishes,
};
use std::time::Duration;

/// The longest time that a route may ask to be remembered.
const REMEMBER_MAX: i32 = 3_600_000;

/// An answer that is refused, and why.
pub(super) type Refused = (Fault, String);

/// How many things a route may name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    pub(super) backends: usize,
    pub(super) redirects: usize,
    pub(super) responses: usize,
}

/// A choice among that many servers.
pub(super) fn pick(choice: balance_pick::Choice, servers: usize) -> Result<Option<Pick>, Refused> {
    let Some(first) = server(choice.first, servers)? else {
        return Ok(None);
    };
    let known = if cfg!(feature = "planted-answer-bug") {
        usize::from(u16::MAX)
    } else {
        servers
    };
    let second = server(choice.second, known)?.filter(|second| *second != first);
    Ok(Some(Pick { first, second }))
}

fn server(index: i32, servers: usize) -> Result<Option<ServerIndex>, Refused> {
    match index {
        -1 => Ok(None),
        ..-1 => Err((Fault::Range, format!("server {index}: below -1"))),
        _ if (index as usize) < servers => Ok(Some(ServerIndex(index as u16))),
        _ => Err((Fault::UnknownServer, format!("server {index} of {servers}"))),
    }
}

/// A decision among what there is.
pub(super) fn route(decision: route::Decision, shape: Shape) -> Result<Routed, Refused> {
    let route::Decision {
        action,
        target,
        remember,
    } = decision;
    if !(0..=REMEMBER_MAX).contains(&remember) {
        return Err((
            Fault::Range,
            format!("remember {remember}: not in 0…{REMEMBER_MAX}"),
        ));
    }
    let known = |most: usize| match u16::try_from(target) {
        Ok(at) if usize::from(at) < most => Ok(at),
        _ => Err((
            Fault::UnknownTarget,
            format!("target {target} of {most} for action {action}"),
        )),
    };
    let target = match action {
        -1 => None,
        0 => Some(Target::Backend(known(shape.backends)?)),
        1 => Some(Target::Redirect(known(shape.redirects)?)),
        2 => Some(Target::Respond(known(shape.responses)?)),
        _ => return Err((Fault::UnknownTarget, format!("action {action}"))),
    };
    Ok(Routed {
        target,
        remember: Duration::from_millis(remember.unsigned_abs().into()),
        given: Given::Asked,
    })
}

/// A preference for a request of which so many attributes are seen; `None` if it says nothing at all.
pub(super) fn preference(
    preference: reuse::Preference,
    attributes: usize,
) -> Result<Option<Preference>, Refused> {
    let reuse::Preference {
        mode,
        fresh,
        tag,
        tag_attribute,
    } = preference;
    let preference = Preference {
        sharing: match mode {
            -1 => None,
            0 => Some(WishedSharing::Never),
            1 => Some(WishedSharing::Safe),
            2 => Some(WishedSharing::Aggressive),
            3 => Some(WishedSharing::Always),
            _ => return Err(range("mode", mode)),
        },
        fresh: match fresh {
            -1 | 0 => Fresh::No,
            1 => Fresh::Yes,
            _ => return Err(range("fresh", fresh)),
        },
        tag: match tag {
            -1 => None,
            tag => Some(u32::try_from(tag).map_err(|_| range("tag", tag))?),
        },
        tag_attribute: match tag_attribute {
            -1 => None,
            at => match u8::try_from(at) {
                Ok(known) if usize::from(known) < attributes => Some(known),
                _ => return Err((Fault::Undeclared, format!("tag-attribute {at} of {attributes}"))),
            },
        },
    };
    Ok((preference != Preference::default()).then_some(preference))
}

/// Where a request stands; `None` if that is as configured.
pub(super) fn standing(standing: classify::Standing) -> Result<Option<Standing>, Refused> {
    let classify::Standing {
        ranked,
        class,
        offset,
        deadline,
    } = standing;
    let standing = Standing {
        priority: match ranked {
            -1 | 0 => None,
            1 => Some(priority(class, offset)?),
            _ => return Err(range("ranked", ranked)),
        },
        wait_max: wait("deadline", deadline)?,
    };
    Ok((standing != Standing::default()).then_some(standing))
}

fn priority(class: i32, offset: i32) -> Result<Priority, Refused> {
    let known = i16::try_from(class).ok().filter(|class| CLASSES.contains(class));
    let class = known.ok_or_else(|| range("class", class))?;
    if !OFFSETS.contains(&offset) {
        return Err(range("offset", offset));
    }
    Ok(Priority {
        class,
        offset: i64::from(offset) * 1000,
    })
}

/// Whether a request may wait; `None` for no opinion.
pub(super) fn verdict(verdict: admit::Verdict) -> Result<Option<Verdict>, Refused> {
    let admit::Verdict {
        action,
        status,
        retry_after,
        wait_max,
    } = verdict;
    match action {
        -1 => Ok(None),
        0 => Ok(Some(Verdict::Accept {
            wait_max: wait("wait-max", wait_max)?,
        })),
        1 => Ok(Some(Verdict::Reject {
            with: match status {
                429 => Rejection::TooManyRequests,
                503 | -1 => Rejection::Unavailable,
                _ => return Err(range("status", status)),
            },
            retry_after: match retry_after {
                -1 => None,
                seconds => Some(
                    u64::try_from(seconds)
                        .ok()
                        .map(Duration::from_secs)
                        .filter(|time| *time <= RETRY_AFTER_MAX)
                        .ok_or_else(|| range("retry-after", seconds))?,
                ),
            },
        })),
        _ => Err(range("action", action)),
    }
}

/// A time that a request may wait; `None` for no opinion.
fn wait(what: &str, milliseconds: i32) -> Result<Option<Duration>, Refused> {
    match u64::try_from(milliseconds) {
        Ok(time) => Ok(Some(Duration::from_millis(time))),
        Err(_) if milliseconds == -1 => Ok(None),
        Err(_) => Err(range(what, milliseconds)),
    }
}

fn range(what: &str, number: i32) -> Refused {
    (Fault::Range, format!("{what} {number}"))
}

/// Wishes for that many servers.
pub(super) fn wishes(figures: Vec<reuse_plan::Figures>, servers: usize) -> Result<Vec<PoolWish>, Refused> {
    let wishes: Vec<PoolWish> = figures
        .into_iter()
        .map(|it| wish(it, servers))
        .collect::<Result<_, _>>()?;
    check_wishes(&wishes, servers).map_err(|fault| (fault, "a server stands in the list twice".into()))?;
    Ok(wishes)
}

fn wish(figures: reuse_plan::Figures, servers: usize) -> Result<PoolWish, Refused> {
    let reuse_plan::Figures {
        server: index,
        low,
        max,
        need,
        preconnect,
    } = figures;
    let server = server(index, servers)?.ok_or_else(|| (Fault::UnknownServer, "server -1".into()))?;
    let connections = |what: &str, number: i32| match u32::try_from(number) {
        _ if number == -1 => Ok(None),
        Ok(number) if number <= CONNECTIONS_MAX => Ok(Some(number)),
        _ => Err((
            Fault::Range,
            format!("{what} {number}: not in 0…{CONNECTIONS_MAX}"),
        )),
    };
    Ok(PoolWish {
        server,
        low: connections("low", low)?,
        max: connections("max", max)?,
        need: connections("need", need)?,
        preconnect: connections("preconnect", preconnect)?,
    })
}

/// A plan for that many servers.
pub(super) fn plan(allocation: balance_plan::Allocation, servers: usize) -> Result<Plan, Refused> {
    let lifetime = match allocation.lifetime {
        -1 => None,
        time => Some(Duration::from_millis(
            u64::try_from(time).map_err(|_| (Fault::Range, format!("lifetime {time}")))?,
        )),
    };
    let tiers = allocation
        .tiers
        .into_iter()
        .map(|it| tier(it, servers))
        .collect::<Result<_, _>>()?;
    let plan = Plan { tiers, lifetime };
    plan.check(servers)
        .map_err(|fault| (fault, "the plan breaks a rule of balance-plan.wit".into()))?;
    Ok(plan)
}

fn tier(tier: balance_plan::Tier, servers: usize) -> Result<Tier, Refused> {
    Ok(Tier {
        selector: match tier.selector {
            balance_plan::Selector::Random => Selector::Random,
            balance_plan::Selector::Roundrobin => Selector::RoundRobin,
            balance_plan::Selector::Leastconn => Selector::LeastConn,
        },
        spill: match tier.spill {
            balance_plan::Spill::WhenDown => Spill::WhenDown,
            balance_plan::Spill::WhenFull => Spill::WhenFull,
        },
        members: tier
            .members
            .into_iter()
            .map(|it| member(it, servers))
            .collect::<Result<_, _>>()?,
    })
}

fn member(member: balance_plan::Member, servers: usize) -> Result<Member, Refused> {
    let balance_plan::Member {
        server: index,
        weight,
        cap,
    } = member;
    let server = server(index, servers)?.ok_or_else(|| (Fault::UnknownServer, "member -1".into()))?;
    let weight = u16::try_from(weight).map_err(|_| (Fault::Range, format!("weight {weight}")))?;
    let cap = match cap {
        -1 => None,
        cap => Some(u32::try_from(cap).map_err(|_| (Fault::Range, format!("cap {cap}")))?),
    };
    Ok(Member { server, weight, cap })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault<T>(answer: Result<T, Refused>) -> Option<Fault> {
        answer.err().map(|(fault, _)| fault)
    }

    #[test]
    fn picks_are_checked() {
        let pick = |first, second| pick(balance_pick::Choice { first, second }, 3);
        let (first, second) = (ServerIndex(0), Some(ServerIndex(2)));
        assert_eq!(pick(0, 2), Ok(Some(Pick { first, second })));
        assert_eq!(pick(0, 0), Ok(Some(Pick { first, second: None })));
        assert_eq!(pick(-1, 99), Ok(None));
        assert_eq!(fault(pick(3, -1)), Some(Fault::UnknownServer));
        assert_eq!(fault(pick(0, 3)), Some(Fault::UnknownServer));
        assert_eq!(fault(pick(-2, -1)), Some(Fault::Range));
        assert_eq!(fault(pick(i32::MIN, -1)), Some(Fault::Range));
    }

    #[test]
    fn preferences_are_checked() {
        let prefer = |mode, fresh, tag, tag_attribute| {
            preference(
                reuse::Preference {
                    mode,
                    fresh,
                    tag,
                    tag_attribute,
                },
                2,
            )
        };
        assert_eq!(prefer(-1, -1, -1, -1), Ok(None));
        assert_eq!(prefer(-1, 0, -1, -1), Ok(None), "an idle one will do anyway");
        assert_eq!(
            prefer(0, 1, i32::MAX, 1),
            Ok(Some(Preference {
                sharing: Some(WishedSharing::Never),
                fresh: Fresh::Yes,
                tag: Some(i32::MAX as u32),
                tag_attribute: Some(1),
            }))
        );
        for (mode, fresh, tag) in [(4, 0, 0), (-2, 0, 0), (0, 2, 0), (0, -2, 0), (0, 0, -2)] {
            assert_eq!(
                fault(prefer(mode, fresh, tag, -1)),
                Some(Fault::Range),
                "{mode} {fresh} {tag}"
            );
        }
        for attribute in [2, -2, 256, i32::MAX] {
            assert_eq!(
                fault(prefer(-1, -1, -1, attribute)),
                Some(Fault::Undeclared),
                "{attribute}"
            );
        }
    }

    #[test]
    fn standings_are_checked() {
        let stand = |ranked, class, offset, deadline| {
            standing(classify::Standing {
                ranked,
                class,
                offset,
                deadline,
            })
        };
        assert_eq!(stand(-1, 9999, i32::MIN, -1), Ok(None), "not read");
        assert_eq!(stand(0, 9999, i32::MIN, -1), Ok(None));
        for (class, offset) in [(-1, -1), (-2047, 524_287), (2047, -524_287)] {
            let expected = Standing {
                priority: Some(Priority {
                    class,
                    offset: i64::from(offset) * 1000,
                }),
                wait_max: None,
            };
            assert_eq!(stand(1, class.into(), offset, -1), Ok(Some(expected)));
        }
        let only_a_deadline = Standing {
            priority: None,
            wait_max: Some(Duration::ZERO),
        };
        assert_eq!(stand(-1, 0, 0, 0), Ok(Some(only_a_deadline)));
        for (ranked, class, offset, deadline) in [
            (2, 0, 0, -1),
            (-2, 0, 0, -1),
            (1, 2048, 0, -1),
            (1, -2048, 0, -1),
            (1, 65_536, 0, -1),
            (1, 0, 524_288, -1),
            (1, 0, i32::MIN, -1),
            (-1, 0, 0, -2),
        ] {
            let answer = stand(ranked, class, offset, deadline);
            assert_eq!(
                fault(answer),
                Some(Fault::Range),
                "{ranked} {class} {offset} {deadline}"
            );
        }
    }

    #[test]
    fn verdicts_are_checked() {
        let judge = |action, status, retry_after, wait_max| {
            verdict(admit::Verdict {
                action,
                status,
                retry_after,
                wait_max,
            })
        };
        let accept = |wait_max| Ok(Some(Verdict::Accept { wait_max }));
        let reject = |with, retry_after| Ok(Some(Verdict::Reject { with, retry_after }));
        assert_eq!(judge(-1, 200, -9, -9), Ok(None), "not read");
        assert_eq!(judge(0, 200, -9, -1), accept(None));
        assert_eq!(judge(0, -1, -1, 250), accept(Some(Duration::from_millis(250))));
        assert_eq!(judge(1, -1, -1, -9), reject(Rejection::Unavailable, None));
        let day = Some(Duration::from_secs(86_400));
        assert_eq!(judge(1, 429, 86_400, -1), reject(Rejection::TooManyRequests, day));
        for (action, status, retry_after, wait_max) in [
            (2, -1, -1, -1),
            (-2, -1, -1, -1),
            (0, -1, -1, -2),
            (1, 200, -1, -1),
            (1, 0, -1, -1),
            (1, 429, 86_401, -1),
            (1, 429, -2, -1),
        ] {
            let answer = judge(action, status, retry_after, wait_max);
            assert_eq!(
                fault(answer),
                Some(Fault::Range),
                "{action} {status} {retry_after} {wait_max}"
            );
        }
    }

    #[test]
    fn wishes_are_checked() {
        let figures = |server, number| reuse_plan::Figures {
            server,
            low: -1,
            max: number,
            need: -1,
            preconnect: number,
        };
        let most = CONNECTIONS_MAX as i32;
        let wished = wishes(vec![figures(1, 0), figures(0, most)], 2).expect("within range");
        assert_eq!(
            (wished[0].max, wished[1].preconnect),
            (Some(0), Some(CONNECTIONS_MAX))
        );
        assert_eq!((wished[0].low, wished[1].need), (None, None));
        assert_eq!(wishes(Vec::new(), 0), Ok(Vec::new()));
        for (list, expected) in [
            (vec![figures(2, 1)], Fault::UnknownServer),
            (vec![figures(-1, 1)], Fault::UnknownServer),
            (vec![figures(-2, 1)], Fault::Range),
            (vec![figures(0, -2)], Fault::Range),
            (vec![figures(0, most + 1)], Fault::Range),
            (vec![figures(0, 1), figures(0, 1)], Fault::Plan),
        ] {
            assert_eq!(fault(wishes(list, 2)), Some(expected));
        }
    }

    #[test]
    fn routes_are_checked() {
        let shape = Shape {
            backends: 2,
            redirects: 1,
            responses: 0,
        };
        let route = |action, target, remember| {
            route(
                route::Decision {
                    action,
                    target,
                    remember,
                },
                shape,
            )
        };
        let routed = |target, remember| Routed {
            target,
            remember: Duration::from_millis(remember),
            given: Given::Asked,
        };
        assert_eq!(route(0, 1, 5), Ok(routed(Some(Target::Backend(1)), 5)));
        assert_eq!(route(-1, 77, 0), Ok(routed(None, 0)));
        assert_eq!(route(-1, 77, 9), Ok(routed(None, 9)));
        for (action, target) in [(0, 2), (0, -1), (1, 1), (2, 0), (3, 0), (-2, 0), (0, 65_536)] {
            assert_eq!(
                fault(route(action, target, 0)),
                Some(Fault::UnknownTarget),
                "{action} {target}"
            );
        }
        assert_eq!(fault(route(0, 0, -1)), Some(Fault::Range));
        assert_eq!(fault(route(0, 0, REMEMBER_MAX + 1)), Some(Fault::Range));
    }
}
