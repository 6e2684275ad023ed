//! How much a worker's loop does before it polls again (SCH-1, SCH-3) and which worker gets a client (SCH-8).

/// Sessions run per turn by default: ⌊560 / s⌋ with s = bits(n) + ⌊n / bits(n)⌋, n workers (SCH-1, V7).
pub fn depth(workers: u16) -> usize {
    let workers = u32::from(workers.max(1));
    let bits = u32::BITS - workers.leading_zeros();
    (560 / (bits + workers / bits)) as usize
}

/// How many of `waiting` sessions to run in a turn of the given depth: two equal halves rather than a long turn and a
/// short one (SCH-3).
pub fn turn(waiting: usize, depth: usize) -> usize {
    if waiting > depth && waiting <= 2 * depth {
        waiting.div_ceil(2)
    } else {
        waiting.min(depth)
    }
}

/// By how much loads must differ before a client moves: by more than both.
#[derive(Clone, Copy, Debug)]
pub struct Margin {
    /// So many connections.
    pub connections: u32,
    /// One part in so many of the own load.
    pub fraction: u32,
}

/// The worker that should get a new client of the accepting one, if another is clearly less loaded: by more than an
/// eighth and 8 connections (DESIGN §4). Loads are the workers' present connections.
pub fn hand_off(
    accepting: usize,
    loads: impl Iterator<Item = (usize, u32)>,
    own: u32,
    margin: Margin,
) -> Option<usize> {
    let (worker, least) = loads
        .filter(|(worker, _)| *worker != accepting)
        .min_by_key(|(_, load)| *load)?;
    let margin = margin.connections.max(own / margin.fraction.max(1));
    (own > least.saturating_add(margin)).then_some(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v7_depth_by_workers() {
        let vector = [
            (1, 280),
            (2, 186),
            (3, 186),
            (4, 140),
            (6, 112),
            (8, 93),
            (12, 80),
            (16, 70),
            (24, 62),
        ];
        for (workers, expected) in vector.into_iter().chain([(32, 50), (48, 40), (64, 35)]) {
            assert_eq!(depth(workers), expected, "{workers} workers");
        }
    }

    #[test]
    fn sch3_a_queue_of_up_to_twice_the_depth_is_halved() {
        assert_eq!(turn(5, 10), 5);
        assert_eq!(turn(10, 10), 10);
        assert_eq!(turn(11, 10), 6);
        assert_eq!(turn(20, 10), 10);
        assert_eq!(turn(21, 10), 10);
    }

    #[test]
    fn a_client_moves_only_to_a_clearly_less_loaded_worker() {
        let margin = Margin {
            connections: 8,
            fraction: 8,
        };
        let to = |own: u32, others: [u32; 2]| {
            hand_off(
                0,
                [(0, own), (1, others[0]), (2, others[1])].into_iter(),
                own,
                margin,
            )
        };
        assert_eq!(to(8, [0, 0]), None, "within 8");
        assert_eq!(to(9, [0, 5]), Some(1));
        assert_eq!(to(9, [5, 0]), Some(2));
        assert_eq!(to(800, [700, 750]), None, "within an eighth");
        assert_eq!(to(801, [700, 750]), Some(1));
        assert_eq!(hand_off(0, std::iter::once((0, 9)), 9, margin), None, "alone");
    }
}
