// Package plot draws charts as SVG: lines, steps, curves of distributions, bars. It is
// pure: the same charts give the same bytes.
//
// A chart is read by people who see it once, so what could be chosen is chosen here:
// large letters, a legend in the order of the series beside the picture and not over it,
// a linear scale upwards that begins at zero (a line that hangs in the air lies about how
// much it rose), and the colours of Okabe and Ito (Color Universal Design, 2008), which
// those who see no red or green tell apart; where they have all been used they come again
// with dashes. What has more points than a picture has columns is thinned out to the
// extremes of each column, which looks the same and has a bounded size.
package plot
