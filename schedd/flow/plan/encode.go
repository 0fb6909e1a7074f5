package plan

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// formVersion is the first byte of an encoded plan.
const formVersion = 1

// The sections of a plan, in their order.
const (
	textSection = iota + 1
	templateSection
	valueSection
	scriptSection
	settingSection
	categorySection
	nodeSection
	arcSection
	flowSection
	reportSection
)

// Encode returns the plan in its form on the wire and on disk.
func Encode(p *Plan) ([]byte, error) {
	var all sectionWriter
	all.section(textSection, p.writeTexts)
	all.section(templateSection, p.writeTemplates)
	all.section(valueSection, func(w *sectionWriter) {
		w.number(len(p.Values))
		for _, v := range p.Values {
			w.number(int(v))
		}
	})
	all.section(scriptSection, p.writeScripts)
	all.section(settingSection, p.writeSettings)
	all.section(categorySection, func(w *sectionWriter) {
		w.number(len(p.Categories))
		for _, c := range p.Categories {
			w.text(c.Name)
			w.signed(c.MaxJobs)
		}
	})
	all.section(nodeSection, p.writeNodes)
	all.section(arcSection, p.writeArcs)
	all.section(flowSection, p.writeFlow)
	if p.Reports.JobstateLog != "" || !p.Reports.IsEmpty() {
		all.section(reportSection, p.Reports.write)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	out := binary.AppendUvarint([]byte{formVersion}, uint64(len(all.to)))
	return encoder.EncodeAll(all.to, out), nil
}

// sectionWriter appends to a form.
type sectionWriter struct{ to []byte }

func (w *sectionWriter) section(number int, write func(*sectionWriter)) {
	var body sectionWriter
	write(&body)
	w.number(number)
	w.number(len(body.to))
	w.to = append(w.to, body.to...)
}

func (w *sectionWriter) number(n int) { w.to = binary.AppendUvarint(w.to, uint64(n)) }
func (w *sectionWriter) signed(n int) { w.to = binary.AppendVarint(w.to, int64(n)) }

func (w *sectionWriter) text(s string) {
	w.number(len(s))
	w.to = append(w.to, s...)
}

func (w *sectionWriter) texts(list []string) {
	w.number(len(list))
	for _, s := range list {
		w.text(s)
	}
}

// bits writes booleans as one number, the first one as its lowest bit.
func (w *sectionWriter) bits(list ...bool) {
	n := 0
	for i, b := range list {
		if b {
			n |= 1 << i
		}
	}
	w.number(n)
}

func (w *sectionWriter) rule(r flow.ExitRule) {
	w.bits(r.IsSet)
	w.signed(r.Code)
}

func (p *Plan) writeTexts(w *sectionWriter) {
	w.number(p.Texts.Len())
	for id := 1; id < p.Texts.Len(); id++ {
		b := p.Texts.Bytes(graph.TextID(id))
		w.number(len(b))
		w.to = append(w.to, b...)
	}
}

func (p *Plan) writeTemplates(w *sectionWriter) {
	w.number(len(p.Templates))
	for _, t := range p.Templates {
		w.text(t.Ad)
		w.number(t.Count)
		w.texts(t.Columns)
		w.texts(t.NodeColumns)
		w.text(t.Source)
	}
}

func (p *Plan) writeScripts(w *sectionWriter) {
	w.number(len(p.Scripts))
	for _, s := range p.Scripts {
		w.number(int(s.Command))
		w.rule(s.Defer)
		w.number(s.DeferSeconds)
		w.number(int(s.DebugFile))
		w.number(int(s.DebugOutput))
	}
}

func (p *Plan) writeSettings(w *sectionWriter) {
	w.number(len(p.Settings))
	for _, s := range p.Settings {
		for _, n := range []int{int(s.Directory), int(s.SavePoint), int(s.Pre), int(s.Post), int(s.Hold), s.Tolerance} {
			w.number(n)
		}
		w.bits(s.ToleranceIsShare, s.FailsFast)
		for _, r := range []flow.ExitRule{s.Rules.PreSkip, s.Rules.UnlessExit, s.Rules.AbortOn, s.Rules.AbortReturn} {
			w.rule(r)
		}
	}
}

func (p *Plan) writeNodes(w *sectionWriter) {
	w.number(p.Graph.Len())
	for id, n := range p.Graph.Nodes() {
		w.to = append(w.to, byte(n.Kind), byte(n.Flags))
		if n.Kind != graph.JoinNode {
			name := p.Graph.NameBytes(id)
			w.number(len(name))
			w.to = append(w.to, name...)
		}
		for _, number := range []uint32{n.Description, n.Settings, n.Vars, n.Line, uint32(n.File), uint32(n.Category),
			uint32(n.Retry)} {
			w.number(int(number))
		}
		w.signed(int(n.Priority))
	}
}

// writeArcs writes the children of each node. Each is the distance from the one before,
// and whether the arc is weak.
func (p *Plan) writeArcs(w *sectionWriter) {
	w.number(p.Graph.Arcs())
	for id := range p.Graph.Nodes() {
		children, before := p.Graph.Children(id), 0
		w.number(len(children))
		for _, a := range children {
			d := (int(a.Child()) - before) << 1
			if a.IsWeak() {
				d |= 1
			}
			w.number(d)
			before = int(a.Child())
		}
	}
}

func (p *Plan) writeFlow(w *sectionWriter) {
	w.bits(p.HasFinal, p.HasProvisioner, p.DepthFirst, p.AlwaysRunPost, p.StopsAtFailure)
	for _, n := range []int{int(p.Final), int(p.Provisioner), p.Limits.Jobs, p.Limits.IdleTasks, p.Limits.Pre,
		p.Limits.Post} {
		w.number(n)
	}
	w.text(p.Directory)
	w.texts(p.Environment)
	w.texts(p.Files)
	w.text(p.RescueBase)
}

func (r *Reports) write(w *sectionWriter) {
	w.text(r.JobstateLog)
	w.number(r.FirstSequence)
	w.text(r.Status.Name)
	w.number(r.Status.MinInterval)
	w.bits(r.Status.IsAlways)
	w.number(len(r.Dots))
	for _, d := range r.Dots {
		w.text(d.Name)
		w.text(d.Source)
		w.text(d.Commands)
		w.bits(d.IsUpdated, d.Numbered)
	}
}
