package progressbar

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/document"
)

// showDelay is how long work lasts before its bar is drawn. Most of it is over by then.
const showDelay = 500 * time.Millisecond

// WorkMeter draws the bar of work that a command does itself. It is used by one
// goroutine, and a nil one draws nothing.
type WorkMeter struct {
	command *frame.Invocation
	title   string
	amount  func(n int64) string
	began   time.Time
	drawn   time.Time // when the bar was last given a number
	done    int64
	total   int64
	bar     jobs.Bar // nil: nothing is shown yet
}

// NewWorkMeter returns the meter of some work. It is nil if standard error is no
// terminal. The total may be an estimate; 0: it is unknown. The amount function writes an
// amount.
func NewWorkMeter(c *frame.Invocation, title string, total int64, amount func(n int64) string) *WorkMeter {
	if c.WantsJSON() {
		return nil
	}
	return newWorkMeter(c, title, total, amount)
}

func newWorkMeter(c *frame.Invocation, title string, total int64, amount func(n int64) string) *WorkMeter {
	if !c.ErrScreen.Terminal {
		return nil
	}
	return &WorkMeter{command: c, title: title, amount: amount, began: c.Now(), total: total}
}

// Add counts work that is done.
func (m *WorkMeter) Add(n int64) {
	if m == nil {
		return
	}
	m.done += n
	now := m.command.Now()
	if now.Sub(m.drawn) < 50*time.Millisecond || now.Sub(m.began) < showDelay {
		return
	}
	m.drawn = now
	if m.bar == nil {
		m.bar = New(m.command, jobs.BarSpec{Total: m.total, Title: func() string { return m.title },
			Counts: m.countsText(), Sample: func() string { return "" }})
	}
	// the total may be an estimate: the bar is not full before the end
	if m.total > 0 && m.done >= m.total {
		m.total = m.done + 1
		m.bar.SetTotal(m.total)
	}
	m.bar.SetCurrent(m.done)
}

// End draws the bar for the last time. If the work was broken off it stays where it is.
func (m *WorkMeter) End(complete bool) {
	if m == nil || m.bar == nil {
		return
	}
	if complete {
		m.bar.SetTotal(max(m.done, 1))
		m.bar.SetCurrent(max(m.done, 1))
	} else {
		m.bar.Abort()
	}
	m.bar.Wait()
}

// countsText returns what stands behind the bar. It is called by the goroutine that
// draws, and reads nothing of the meter that changes.
func (m *WorkMeter) countsText() func(current, total int64) string {
	began, now, amount := m.began, m.command.Now, m.amount
	return func(current, total int64) string {
		elapsed := now().Sub(began)
		parts := []string{amount(current)}
		if total > 0 {
			parts[0] += " of " + amount(total)
		}
		rate := float64(current) / max(elapsed.Seconds(), 0.001)
		parts = append(parts, amount(int64(rate))+"/s")
		if total > 0 && current < total && rate > 0 {
			left := time.Duration(float64(total-current) / rate * float64(time.Second))
			parts = append(parts, "ETA "+document.SpanText(left))
		} else {
			parts = append(parts, "in "+document.SpanText(elapsed))
		}
		return strings.Join(parts, "  ")
	}
}

// Count writes an amount that is a number of things.
func Count(n int64) string { return fmt.Sprint(n) }

// Bytes writes an amount of bytes.
func Bytes(n int64) string { return roost.Bytes(n).String() }
