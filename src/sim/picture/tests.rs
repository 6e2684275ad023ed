use super::*;
use roxmltree::{Document, Node, ParsingOptions};

/// A run of so many servers and points that looks like one: a burst in its middle, one server that is slow then.
fn run(servers: usize, points: usize) -> Series {
    let mut random = 12_345_u32;
    let mut below = move |end: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % end
    };
    let mut point = |at: usize| {
        let burst = u32::from(at * 3 / points.max(1) == 1);
        let mut each = |most: u32| (0..servers).map(|_| below(most)).collect::<Vec<u32>>();
        let (requests, in_flight) = (each(40 + 40 * burst), each(12 + 20 * burst));
        let p50 = 800 + u64::from(below(700));
        let p99 = p50 * (3 + u64::from(burst * below(40)));
        Point {
            requests,
            in_flight,
            waiting: burst * below(60),
            latency: [p50, p50 * 2, p99],
            queueing: [0, u64::from(burst) * p50, u64::from(burst) * p99],
            failed: burst * below(3),
            reused: below(300),
            opened: below(9),
        }
    };
    Series {
        title: "One server turns slow".to_owned(),
        about: "Every client asks again as soon as it can.".to_owned(),
        policy: "least-latency".to_owned(),
        step: 100_000,
        servers: (1..=servers).map(|server| format!("s{server}")).collect(),
        points: (0..points).map(&mut point).collect(),
        events: vec![
            (points as u64 * 33_333, "s2 turns slow".to_owned()),
            (points as u64 * 66_666, "s2 is back".to_owned()),
        ],
    }
}

/// Parses it, and so says that it is well-formed.
fn read(page: &str) -> Document<'_> {
    let allow_dtd = true;
    let options = ParsingOptions {
        allow_dtd,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}\n{page}"))
}

fn elements<'a>(document: &'a Document, name: &str) -> Vec<Node<'a, 'a>> {
    let named = document
        .descendants()
        .filter(|node| node.tag_name().name() == name);
    named.collect()
}

fn with_class<'a>(document: &'a Document, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node| {
        node.attribute("class")
            .is_some_and(|it| it.split(' ').any(|it| it == class))
    };
    document.descendants().filter(has).collect()
}

#[test]
fn a_page_has_all_charts_and_tables_and_nothing_foreign() {
    let run = run(5, 100);
    let page = page(&[&run]);
    let document = read(&page);
    assert_eq!(elements(&document, "figure").len(), SUBJECTS.len());
    assert_eq!(with_class(&document, "chart").len(), SUBJECTS.len());
    assert_eq!(elements(&document, "table").len(), 3);
    assert!(elements(&document, "script").is_empty());
    let urls = page.matches("://").count();
    assert_eq!(urls, 1, "only the name of HTML is an address");
    let spoken = with_class(&document, "chart");
    assert!(spoken.iter().all(|svg| {
        svg.attribute("aria-label")
            .is_some_and(|it| it.contains("least-latency"))
    }));
}

#[test]
fn the_same_run_is_the_same_page() {
    let (one, other) = (run(7, 300), run(7, 300));
    assert_eq!(page(&[&one]), page(&[&other]));
}

#[test]
fn texts_of_others_stay_texts() {
    let hostile = "</title></style></svg><script>alert(1)</script>\" onload='x' & \u{0}\u{202e}]]>";
    let mut run = run(2, 10);
    run.title = hostile.to_owned();
    run.about = hostile.to_owned();
    run.policy = hostile.to_owned();
    run.servers[1] = hostile.to_owned();
    run.events[0].1 = hostile.to_owned();
    let page = page(&[&run, &run]);
    let document = read(&page);
    assert!(elements(&document, "script").is_empty());
    let attributes = document.descendants().flat_map(|node| node.attributes());
    assert!(attributes.map(|it| it.name()).all(|name| !name.starts_with("on")));
    let title = elements(&document, "h1")[0].text().unwrap_or_default();
    assert!(
        title.starts_with(
            "</title></style></svg><script>alert(1)</script>\" onload='x' & \u{fffd}\u{fffd}]]>"
        )
    );
}

#[test]
fn of_many_servers_the_busiest_have_a_colour_and_a_page_stays_small() {
    let run = run(100, 1_000);
    let page = page(&[&run]);
    let document = read(&page);
    let shares = &elements(&document, "section")[0];
    let curves = shares
        .descendants()
        .filter(|node| node.tag_name().name() == "path");
    assert_eq!(curves.count(), 12);
    assert!(page.contains("the rest, up to 100 %, is that of the others"));
    assert!(page.contains("89 others: the highest"));
    assert!(page.contains("a column of a chart is 5 steps of 100 ms."));
    assert!(page.len() < 300 << 10, "{} bytes", page.len());
}

#[test]
fn the_page_of_two_large_runs_stays_small() {
    let run = run(100, 1_000);
    let page = page(&[&run, &run]);
    assert!(page.len() < 450 << 10, "{} bytes", page.len());
}

#[test]
fn two_runs_have_the_same_scales_and_their_differences() {
    let (one, mut other) = (run(5, 100), run(5, 60));
    other.policy = "leastconn".to_owned();
    other.servers[4] = "s9".to_owned();
    other.points.iter_mut().for_each(|point| point.waiting *= 7);
    let page = page(&[&one, &other]);
    let document = read(&page);
    for section in elements(&document, "section") {
        let ticks = |figure: Node| -> Vec<String> {
            let texts = figure
                .descendants()
                .filter(|node| node.tag_name().name() == "text");
            let ticks = texts.filter(|text| text.attribute("dy").is_some());
            ticks.filter_map(|tick| tick.text().map(str::to_owned)).collect()
        };
        let figures: Vec<Node> = section
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/1999/xhtml", "figure")))
            .collect();
        assert_eq!(figures.len(), 2);
        assert_eq!(ticks(figures[0]), ticks(figures[1]));
    }
    assert!(page.contains("difference of shares") && page.contains("leastconn"));
    let heads = elements(&document, "th");
    assert_eq!(heads.iter().filter(|head| head.text() == Some("s9")).count(), 1);
}

#[test]
fn runs_of_the_same_policy_have_names_of_their_own() {
    let run = run(1, 3);
    let page = page(&[&run, &run]);
    assert!(page.contains("least-latency A") && page.contains("least-latency B"));
}

#[test]
fn what_never_happened_is_a_sentence() {
    let mut run = run(3, 10);
    run.points
        .iter_mut()
        .for_each(|point| (point.waiting, point.queueing, point.failed) = (0, [0; 3], 0));
    let page = page(&[&run]);
    let document = read(&page);
    assert_eq!(with_class(&document, "chart").len(), SUBJECTS.len() - 3);
    assert!(page.contains("No request failed.") && page.contains("Nobody had to wait for a slot."));
}

#[test]
fn runs_of_nothing_are_pages() {
    let (no_points, no_servers, empty) = (run(3, 0), run(0, 5), Series::default());
    let runs: [&[&Series]; 6] = [
        &[],
        &[&empty],
        &[&no_points],
        &[&no_servers],
        &[&empty, &run(2, 5)],
        &[&no_points, &no_servers],
    ];
    for runs in runs {
        read(&page(runs));
    }
    assert!(page(&[&no_points]).contains("Nothing was run"));
}

#[test]
fn the_largest_numbers_are_drawn() {
    let mut run = run(2, 3);
    run.step = Micros::MAX / 2;
    for point in &mut run.points {
        *point = Point {
            requests: vec![u32::MAX; 2],
            in_flight: vec![u32::MAX; 2],
            waiting: u32::MAX,
            latency: [1, 2, Micros::MAX],
            queueing: [Micros::MAX; 3],
            failed: u32::MAX,
            reused: u32::MAX,
            opened: u32::MAX,
        };
    }
    read(&page(&[&run]));
}

#[test]
fn one_chart_in_full() {
    let point = |requests: [u32; 2]| Point {
        requests: requests.into(),
        in_flight: vec![0; 2],
        ..Point::default()
    };
    let run = Series {
        step: 1_000_000,
        servers: vec!["a".to_owned(), "b".to_owned()],
        points: vec![point([3, 1]), point([3, 1]), point([0, 0]), point([1, 3])],
        events: vec![(2_000_000, "b is <back>".to_owned())],
        policy: "first".to_owned(),
        ..Series::default()
    };
    let page = page(&[&run]);
    let begin = page.find("<svg").expect("a chart");
    let end = begin + page[begin..].find("</figure>").expect("its end");
    insta::assert_snapshot!(&page[begin..end]);
}
