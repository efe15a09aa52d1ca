//! Where a row's partition, peers and frame begin and end.

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::span::Span;
use warpframe_device::Buffer;
use warpframe_device::ops::window::Bounds;

/// Where a frame begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FrameEdge {
    /// With the partition.
    Unbounded,
    /// So many rows behind the row.
    Rows(i64),
    /// So many groups of peers behind the row's.
    Groups(i64),
    /// Where the array of this number says.
    Known(usize),
}

/// Positions (`u32`) of the row that a kernel looks at; its own is `row`.
pub(crate) struct RowPlaces<'a> {
    /// `None` where all rows are peers.
    bounds: Option<&'a Bounds>,
    pub(super) rows: u64,
    /// The edges that rows have in arrays (`u32`).
    known: Vec<&'a Buffer>,
    pub(super) partition: Span,
    peers: Option<Peers>,
    frames: Vec<([FrameEdge; 2], Span)>,
}

#[derive(Clone)]
enum Peers {
    /// All rows.
    All,
    Groups {
        /// Array of the numbers of peers.
        number_of: String,
        offsets: String,
        /// The row's.
        number: String,
    },
}

impl<'a> RowPlaces<'a> {
    /// Of `rows` rows in their order. `bounds`: of their partitions, `None` where all are peers.
    pub(crate) fn new(
        rows: u64,
        bounds: Option<&'a Bounds>,
        known: Vec<&'a Buffer>,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> RowPlaces<'a> {
        let partition = match bounds {
            Some(bounds) => {
                let partition_of = generator.params.borrowed("const u32", &bounds.partition_of);
                let partitions = generator.params.borrowed("const u32", &bounds.partitions);
                let partition = out.let_("u32", format_args!("{partition_of}[row]"));
                let begin = out.let_("u32", format_args!("{partitions}[{partition}]"));
                Span { begin, end: out.let_("u32", format_args!("{partitions}[{partition} + 1]")) }
            }
            None => {
                let rows = generator.params.word("u64", rows);
                Span { begin: "0u".into(), end: out.let_("u32", format_args!("(u32){rows}")) }
            }
        };
        RowPlaces { bounds, rows, known, partition, peers: None, frames: vec![] }
    }

    fn peers(&mut self, generator: &mut Generator<'_>, out: &mut Emitter) -> Peers {
        let bounds = self.bounds;
        let made = self.peers.get_or_insert_with(|| match bounds {
            Some(bounds) => {
                let number_of = generator.params.borrowed("const u32", &bounds.peers_of);
                let offsets = generator.params.borrowed("const u32", &bounds.peers);
                let number = out.let_("u32", format_args!("{number_of}[row]"));
                Peers::Groups { number_of, offsets, number }
            }
            None => Peers::All,
        });
        made.clone()
    }

    /// The row's peers.
    pub(super) fn peer_group(&mut self, generator: &mut Generator<'_>, out: &mut Emitter) -> Span {
        self.frame([FrameEdge::Groups(0); 2], generator, out)
    }

    /// How many groups of peers of the partition come before the row's.
    pub(super) fn groups_before(
        &mut self,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        match self.peers(generator, out) {
            Peers::All => "0u".to_string(),
            Peers::Groups { number_of, number, .. } => {
                out.let_("u32", format_args!("{number} - {number_of}[{}]", self.partition.begin))
            }
        }
    }

    /// The row's frame. An empty one may end before it begins.
    pub(crate) fn frame(
        &mut self,
        edges: [FrameEdge; 2],
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Span {
        if let Some((_, span)) = self.frames.iter().find(|(known, _)| *known == edges) {
            return span.clone();
        }
        let [begin, end] = [(edges[0], true), (edges[1], false)].map(|(edge, start)| {
            let code = self.edge(edge, start, generator, out);
            out.let_("u32", code)
        });
        let span = Span { begin, end };
        self.frames.push((edges, span.clone()));
        span
    }

    fn edge(
        &mut self,
        edge: FrameEdge,
        start: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        let Span { begin, end } = self.partition.clone();
        // The end is one beyond the last.
        let beyond = i64::from(!start);
        match edge {
            FrameEdge::Unbounded => {
                if start {
                    begin
                } else {
                    end
                }
            }
            FrameEdge::Rows(rows) => {
                let rows = generator.params.word("i64", rows + beyond);
                format!("(u32)minimum(maximum((i64)row + {rows}, (i64){begin}), (i64){end})")
            }
            FrameEdge::Groups(groups) => {
                let Peers::Groups { number_of, offsets, number } = self.peers(generator, out)
                else {
                    // The rows' only group begins at the first and ends at the last row.
                    return if groups + beyond <= 0 { begin } else { end };
                };
                if groups == 0 {
                    return format!("{offsets}[{number} + {beyond}]");
                }
                // The number of the group that begins where the frame does, or after it; there is
                // one more than groups.
                let groups = generator.params.word("i64", groups + beyond);
                let first = out.let_("i64", format_args!("(i64){number_of}[{begin}]"));
                let last = out.let_("i64", format_args!("(i64){number_of}[{end} - 1] + 1"));
                let group = format!("minimum(maximum((i64){number} + {groups}, {first}), {last})");
                format!("{offsets}[{group}]")
            }
            FrameEdge::Known(at) => {
                format!("{}[row]", generator.params.borrowed("const u32", self.known[at]))
            }
        }
    }
}
