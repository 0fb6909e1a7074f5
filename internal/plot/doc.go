// Package plot draws charts as SVG: lines, steps, distributions and bars. It is pure: the
// same charts give the same bytes.
//
// A chart is read by people who see it once, so this package makes the choices. Letters
// are large. The legend is beside the chart, in the order of the series. The linear Y
// axis begins at zero, because a line without a base misleads about how much it rose. The
// colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind
// people can distinguish; after the last colour they repeat with dashes. A series with
// more points than the chart has columns is reduced to the extremes of each column, which
// looks the same and has a bounded size.
package plot
