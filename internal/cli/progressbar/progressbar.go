// Package progressbar draws the bars of commands that wait for jobs, or do long work
// themselves.
package progressbar

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
)

// terminalBar is a jobs.Bar.
type terminalBar struct {
	*mpb.Bar
	pool *mpb.Progress
}

func (b terminalBar) SetTotal(total int64) { b.Bar.SetTotal(total, false) }
func (b terminalBar) Abort()               { b.Bar.Abort(false) }

// Wait completes the bar, unless it was aborted.
func (b terminalBar) Wait() {
	b.Bar.SetTotal(-1, true)
	b.pool.Wait()
}

// New draws a bar on the standard error of a command.
func New(c *frame.Invocation, spec jobs.BarSpec) jobs.Bar {
	pool := mpb.NewWithContext(c.Context, mpb.WithOutput(c.Stderr), mpb.WithAutoRefresh(),
		mpb.WithRefreshRate(100*time.Millisecond))
	style := mpb.BarStyle().Lbound(" ").Rbound(" ").Filler("━").Tip("━").Padding("─")
	if c.ErrScreen.Colour {
		style = style.FillerMeta(func(s string) string {
			return c.ErrScreen.ColourText(frame.Green, s)
		}).TipMeta(func(s string) string { return c.ErrScreen.ColourText(frame.Green, s) }).
			PaddingMeta(func(s string) string { return c.ErrScreen.ColourText(frame.Dim, s) })
	}
	w := c.ErrScreen.Width
	// the total of a bar that is made with one cannot be changed
	bar := pool.New(0, style, mpb.BarWidth(max(min(w-w/3-48, 40), 10)),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return spec.Title() })),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return spec.Counts(s.Current, s.Total) })),
		mpb.BarExtender(mpb.BarFillerFunc(func(to io.Writer, _ decor.Statistics) error {
			if sample := spec.Sample(); sample != "" {
				_, err := fmt.Fprintln(to, c.ErrScreen.ColourText(frame.Red,
					frame.TruncateText("  "+sample, max(w-1, 20))))
				return err
			}
			return nil
		}), false))
	bar.SetTotal(spec.Total, false)
	return terminalBar{bar, pool}
}
