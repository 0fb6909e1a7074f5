package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/roost-batch/roost"
)

// outputScreen is what a stream leads to.
type outputScreen struct {
	terminal bool
	width    int // columns; 0 for no bound
	colour   bool
}

func screenOf(w io.Writer) outputScreen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return outputScreen{}
	}
	s := outputScreen{terminal: true, colour: true}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.width = width
	}
	return s
}

// The colours, as ECMA-48 numbers them.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
)

func (s outputScreen) colourText(colour, text string) string {
	if !s.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// colour settles whether colours are used: --color, else NO_COLOR (no-color.org) and
// TERM.
func (c *invocation) colour() error {
	switch c.stringFlag("color") {
	case "always":
		c.out.colour, c.err.colour = true, true
	case "never":
		c.out.colour, c.err.colour = false, false
	case "auto":
		if c.getenv("NO_COLOR") != "" || c.getenv("TERM") == "dumb" {
			c.out.colour, c.err.colour = false, false
		}
	default:
		return kindErrorf(roost.Usage, "--color is auto, always or never, not %q", c.stringFlag("color"))
	}
	return nil
}
