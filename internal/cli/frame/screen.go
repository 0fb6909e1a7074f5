package frame

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/roost-batch/roost"
)

// Screen is what a stream leads to.
type Screen struct {
	Terminal bool
	Width    int // columns; 0 for no bound
	Colour   bool
}

// ScreenOf finds out what a stream leads to.
func ScreenOf(w io.Writer) Screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	s := Screen{Terminal: true, Colour: true}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}

// The colours, as ECMA-48 numbers them.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
)

// ColourText puts a text into a colour, on a screen that has colours.
func (s Screen) ColourText(colour, text string) string {
	if !s.Colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// colour settles whether colours are used: --color, else NO_COLOR (no-color.org) and
// TERM.
func (c *Invocation) colour() error {
	switch c.StringFlag("color") {
	case "always":
		c.OutScreen.Colour, c.ErrScreen.Colour = true, true
	case "never":
		c.OutScreen.Colour, c.ErrScreen.Colour = false, false
	case "auto":
		if c.Getenv("NO_COLOR") != "" || c.Getenv("TERM") == "dumb" {
			c.OutScreen.Colour, c.ErrScreen.Colour = false, false
		}
	default:
		return KindErrorf(roost.Usage, "--color is auto, always or never, not %q", c.StringFlag("color"))
	}
	return nil
}
