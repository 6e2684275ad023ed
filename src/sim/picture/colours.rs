//! Which colours can everybody tell apart?
//!
//! Eleven and a grey, for a light page and for a dark one, looked for so that the nearest two are far from each other, for eyes
//! with all kinds of cones and for those without one kind. Neighbours in the list are farther apart still, since they touch
//! where shares are drawn. Paper is always light.

use super::cast::COLOURS;
use super::markup::Markup;

const LIGHT: [&str; COLOURS] = [
    "#5577dd", "#dd7700", "#22c4cc", "#d4b200", "#770055", "#666600", "#aa99ff", "#116688", "#ff8899",
    "#553300", "#113388", "#808080",
];
const DARK: [&str; COLOURS] = [
    "#0088dd", "#eeee66", "#ee9900", "#aa5588", "#00ddaa", "#005555", "#667711", "#cc99ff", "#aaeeff",
    "#882200", "#7733bb", "#969696",
];

/// The rules that give each class its colour.
pub(super) fn write(style: &mut Markup) {
    rules(style, &LIGHT);
    style.verbatim("@media screen and (prefers-color-scheme: dark) {\n");
    rules(style, &DARK);
    style.verbatim("}\n");
}

fn rules(style: &mut Markup, colours: &[&str]) {
    for (colour, ink) in colours.iter().enumerate() {
        style.words(&format!(".c{colour} {{ --ink: {ink}; }}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Triple = [f64; 3];
    /// What eyes make of light: with all cones, without those for long waves, for middle ones, for short ones (Machado,
    /// Oliveira and Fernandes 2009).
    const EYES: [[Triple; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.3039],
        ],
    ];

    #[test]
    fn all_eyes_tell_all_colours_apart() {
        for (colours, paper) in [(LIGHT, "#ffffff"), (DARK, "#14171b")] {
            for (at, one) in colours.iter().enumerate() {
                assert!(distance(one, paper) > 0.15, "{one} on {paper}");
                for (other, between) in colours[..at].iter().rev().zip(0..) {
                    let least = if between == 0 { 0.12 } else { 0.07 };
                    assert!(
                        distance(one, other) > least,
                        "{one} {other}: {}",
                        distance(one, other)
                    );
                }
            }
        }
    }

    /// Of the eyes for which it is smallest, in the space of Oklab.
    fn distance(one: &str, other: &str) -> f64 {
        let squares = |a: Triple, b: Triple| (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>();
        let of = |eye| squares(perceived(light(one), eye), perceived(light(other), eye)).sqrt();
        EYES.iter().map(of).fold(f64::INFINITY, f64::min)
    }

    fn light(colour: &str) -> Triple {
        [1, 3, 5].map(|at| {
            let part = u8::from_str_radix(&colour[at..at + 2], 16).expect("two hexadecimal digits");
            ((f64::from(part) / 255.0 + 0.055) / 1.055).powf(2.4)
        })
    }

    fn perceived(light: Triple, eye: &[Triple; 3]) -> Triple {
        let [red, green, blue] = through(eye, light).map(|part| part.clamp(0.0, 1.0));
        let cones = [
            [0.412_221, 0.536_333, 0.051_446],
            [0.211_903, 0.680_7, 0.107_397],
            [0.088_302, 0.281_719, 0.629_979],
        ];
        let answers = through(&cones, [red, green, blue]).map(f64::cbrt);
        let axes = [
            [0.210_454, 0.793_618, -0.004_072],
            [1.977_998, -2.428_592, 0.450_594],
            [0.025_904, 0.782_772, -0.808_676],
        ];
        through(&axes, answers)
    }

    fn through(matrix: &[Triple; 3], of: Triple) -> Triple {
        matrix.map(|row| row[0] * of[0] + row[1] * of[1] + row[2] * of[2])
    }
}
