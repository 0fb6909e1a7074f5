package config

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// GPUs says which of a machine's GPUs its startd hands out. The zero value hands out all, in whole or in parts.
type GPUs struct {
	Library   string   // the file of NVML; "": the one that the driver has installed
	Use       []string // UUIDs and indexes; nil: all
	None      bool     // they are left alone, and the library is not loaded
	Exclusive bool     // no two tasks share one
}

// zero reports whether nothing is set.
func (g *GPUs) zero() bool { return g.Library == "" && len(g.Use) == 0 && !g.None && !g.Exclusive }

func (s *section) readGPUs(b *hclsyntax.Block, to *GPUs) {
	g := s.inside(b)
	g.text("library", &to.Library)
	g.readUse(to)
	share := true
	g.truth("share", &share)
	to.Exclusive = !share
	g.done()
}

// readUse reads a list of cards, or one of the words all and none.
func (s *section) readUse(to *GPUs) {
	const name, cure = "use", `write it as use = ["0", "1"], with indexes or UUIDs, or use = "none"`
	if attr, ok := s.body.Attributes[name]; ok {
		if v, _ := attr.Expr.Value(nil); v.IsWhollyKnown() && !v.IsNull() && v.Type() == cty.String {
			s.known = append(s.known, name)
			switch v.AsString() {
			case "none":
				to.None = true
			case "all":
			default:
				s.add(attr.Expr.Range(), cure, "use: %q is neither \"all\" nor \"none\"", v.AsString())
			}
			return
		}
	}
	s.list(name, `"0", "GPU-…"`, &to.Use, func(text string, at hcl.Range) {
		if _, err := strconv.ParseUint(text, 10, 16); err != nil && !strings.HasPrefix(text, "GPU-") && !strings.HasPrefix(text, "MIG-") {
			s.add(at, cure, "use: %q is neither an index nor the UUID of a GPU", text)
		}
	})
	if to.Use != nil && len(to.Use) == 0 {
		to.Use, to.None = nil, true
	}
}

func (w writer) gpus(g GPUs) {
	if g.zero() {
		return
	}
	b := w.block("gpus")
	b.text("library", g.Library)
	b.list("use", g.Use)
	if g.None {
		b.text("use", "none")
	}
	if g.Exclusive {
		b.to.SetAttributeValue("share", cty.False)
	}
}
