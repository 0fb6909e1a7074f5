package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// GPUSettings selects the GPUs of a machine that its startd offers. The zero value offers
// all, whole or in parts.
type GPUSettings struct {
	Library   string   // file of NVML; "": the one that the driver has installed
	Use       []string // UUIDs and indexes; nil: all
	None      bool     // no GPUs are offered, and the library is not loaded
	Exclusive bool     // no two tasks share a GPU
}

// isZero reports whether nothing is set.
func (g *GPUSettings) isZero() bool {
	return g.Library == "" && len(g.Use) == 0 && !g.None && !g.Exclusive
}

func (s *blockReader) readGPUs(b *hclsyntax.Block, to *GPUSettings) {
	g := s.innerBlock(b)
	g.readText("library", &to.Library)
	g.readGPUUse(to)
	share := true
	g.readBool("share", &share)
	to.Exclusive = !share
	g.reportUnknown()
}

// checkGPUSharing makes sure that no two startds of a host offer the same GPU by default.
// A startd without GPU settings leaves the GPUs to the first such startd.
func (n *Node) checkGPUSharing() {
	taken := map[string]bool{} // by library, because each library finds a machine's GPUs of its own
	for i := range n.Startds {
		g := &n.Startds[i].GPUs
		if g.None || g.Use != nil {
			continue
		}
		g.None = taken[g.Library]
		taken[g.Library] = true
	}
}

// checkGPUs compares the GPU settings of the startds of a host.
func (n *Node) checkGPUs() error {
	owner, all := map[[2]string]string{}, map[string]string{}
	for _, d := range n.Startds {
		if !d.GPUs.None && d.GPUs.Use == nil {
			all[d.GPUs.Library] = d.Name
		}
		for _, name := range d.GPUs.Use {
			key := [2]string{d.GPUs.Library, name}
			if other, taken := owner[key]; taken {
				return fmt.Errorf("%w: startds %s and %s both hand out GPU %s", roost.BadConfig, other, d.Name, name)
			}
			owner[key] = d.Name
		}
	}
	for _, d := range n.Startds {
		if other, taken := all[d.GPUs.Library]; taken && len(d.GPUs.Use) > 0 {
			return fmt.Errorf("%w: startd %s hands out all GPUs, and startd %s some of them: name in its gpus block "+
				"those that %s may use", roost.BadConfig, other, d.Name, other)
		}
	}
	return nil
}

// readGPUUse reads a list of GPUs, or one of the words all and none.
func (s *blockReader) readGPUUse(to *GPUSettings) {
	const name, cure = "use", `write it as use = ["0", "1"], with indexes or UUIDs, or use = "none"`
	if attr, ok := s.body.Attributes[name]; ok {
		if v, _ := attr.Expr.Value(nil); v.IsWhollyKnown() && !v.IsNull() && v.Type() == cty.String {
			s.knownNames = append(s.knownNames, name)
			switch v.AsString() {
			case "none":
				to.None = true
			case "all":
			default:
				s.addProblem(attr.Expr.Range(), cure, "use: %q is neither \"all\" nor \"none\"", v.AsString())
			}
			return
		}
	}
	s.readList(name, `"0", "GPU-…"`, &to.Use, func(text string, at hcl.Range) {
		if _, err := strconv.ParseUint(text, 10, 16); err != nil && !strings.HasPrefix(text, "GPU-") &&
			!strings.HasPrefix(text, "MIG-") {
			s.addProblem(at, cure, "use: %q is neither an index nor the UUID of a GPU", text)
		}
	})
	if to.Use != nil && len(to.Use) == 0 {
		to.Use, to.None = nil, true
	}
}

func (w fileWriter) writeGPUs(g GPUSettings) {
	if g.isZero() {
		return
	}
	b := w.writeBlock("gpus")
	b.writeText("library", g.Library)
	b.writeList("use", g.Use)
	if g.None {
		b.writeText("use", "none")
	}
	if g.Exclusive {
		b.to.setAttribute("share", "false")
	}
}
