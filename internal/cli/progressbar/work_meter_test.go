package progressbar

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/roost-batch/roost/internal/cli/frame"
)

// drawOnTerminal draws the bar of work on a terminal of so many columns, and returns what
// came there.
func drawOnTerminal(t *testing.T, columns uint16, colour bool,
	work func(m *WorkMeter, advance func(time.Duration))) string {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("SKIP: there are no terminals here: %v", err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	app := &frame.App{Stderr: terminal, Now: func() time.Time { return now }}
	app.ErrScreen = frame.ScreenOf(terminal)
	app.ErrScreen.Colour = colour
	c := &frame.Invocation{App: app, Context: context.Background(), Command: &frame.Command{Name: "test"}}
	m := newWorkMeter(c, "export", 1000, Count)
	if m == nil {
		t.Fatal("on a terminal there is no bar")
	}
	drawn := make(chan string)
	go func() {
		var all strings.Builder
		for r := bufio.NewReader(master); ; {
			b, err := r.ReadByte()
			if err != nil { // the terminal was closed
				drawn <- all.String()
				return
			}
			all.WriteByte(b)
		}
	}()
	work(m, func(d time.Duration) { now = now.Add(d) })
	terminal.Close()
	return <-drawn
}

func TestWorkMeterOnTerminal(t *testing.T) {
	half := func(m *WorkMeter, advance func(time.Duration)) {
		m.Add(1)
		advance(time.Second)
		m.Add(499)
		m.End(false)
	}
	for _, c := range []struct {
		columns uint16
		colour  bool
		want    []string
	}{
		{120, true, []string{"export", "500 of 1000", "500/s", "ETA 1.0s", "\x1b[32m"}},
		{120, false, []string{"export", "500 of 1000", "500/s", "ETA 1.0s"}},
		{24, false, []string{"export"}},
	} {
		got := drawOnTerminal(t, c.columns, c.colour, half)
		for _, text := range c.want {
			if !strings.Contains(got, text) {
				t.Errorf("on %d columns: %q lacks %q", c.columns, got, text)
			}
		}
		if !c.colour && strings.Contains(got, "\x1b[32m") {
			t.Errorf("on %d columns without colours: %q has some", c.columns, got)
		}
		for line := range strings.SplitSeq(got, "\r\n") {
			if n := frame.TextWidth(line[strings.LastIndexByte(line, '\r')+1:]); !c.colour && n > int(c.columns)+8 {
				t.Errorf("on %d columns: a line of %d: %q", c.columns, n, line)
			}
		}
	}
}

// TestWorkMeterShort checks that nothing is drawn of work that is over at once. Work
// beyond its estimate ends with a full bar.
func TestWorkMeterShort(t *testing.T) {
	if got := drawOnTerminal(t, 80, false, func(m *WorkMeter, advance func(time.Duration)) {
		m.Add(500)
		advance(100 * time.Millisecond)
		m.Add(500)
		m.End(true)
	}); got != "" {
		t.Errorf("of short work %q is drawn", got)
	}
	got := drawOnTerminal(t, 120, false, func(m *WorkMeter, advance func(time.Duration)) {
		advance(time.Second)
		m.Add(1000)
		advance(time.Second)
		m.Add(1000)
		m.End(true)
	})
	if !strings.Contains(got, "2000 of 2000") {
		t.Errorf("at the end of more work than was estimated: %q", got)
	}
}

// TestWorkMeterElsewhere checks that there is no bar where standard error is no terminal.
func TestWorkMeterElsewhere(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	app := &frame.App{Stderr: w, Now: time.Now}
	app.ErrScreen = frame.ScreenOf(w)
	m := newWorkMeter(&frame.Invocation{App: app}, "export", 10, Bytes)
	m.Add(10) // a nil meter is one
	m.End(true)
	if m != nil {
		t.Error("a pipe gets a bar")
	}
}
