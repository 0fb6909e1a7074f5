package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// PilotsFile returns the file with a user's providers. It is below $XDG_CONFIG_HOME, or
// ~/.config (XDG Base Directory Specification).
func PilotsFile(getenv func(string) string) (string, error) {
	base := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		if base = getenv("HOME"); base == "" {
			return "", fmt.Errorf("pilots: %w: $HOME is not set", roost.NoInput)
		}
		base = filepath.Join(base, ".config")
	}
	return filepath.Join(base, "roost", "pilots.hcl"), nil
}

// LoadPilots reads a user's providers, in their order, with defaults for what the file
// leaves out. Without a file there are none. Errors are of the kinds of [Load].
func LoadPilots(file string) ([]provider.Settings, error) {
	text, err := readFile("providers", file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, _, err := parsePilots(file, text)
	return list, err
}

// parsePilots parses the text of a file with providers. It returns their blocks, too.
func parsePilots(file string, text []byte) ([]provider.Settings, []*hclsyntax.Block, error) {
	p := newProblems(file, text)
	if at, ok := isTooDeep(text); ok {
		p.addProblem(at, "", "brackets are nested more than %d deep", maxNesting)
		return nil, nil, p.asError()
	}
	parsed, diags := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
	if diags.HasErrors() {
		p.addDiagnostics(diags)
		return nil, nil, p.asError()
	}
	s := &blockReader{problemList: p, body: parsed.Body.(*hclsyntax.Body), title: "providers"}
	blocks := s.nestedBlocks("provider")
	var list []provider.Settings
	for _, b := range blocks {
		list = append(list, s.readPilotProvider(b, list))
	}
	s.reportUnknown()
	return list, blocks, p.asError()
}

func hasPilotProvider(list []provider.Settings, name string) bool {
	return slices.ContainsFunc(list, func(o provider.Settings) bool { return o.Name == name })
}

// readPilotProvider reads one provider; before are those above it.
func (s *blockReader) readPilotProvider(b *hclsyntax.Block, before []provider.Settings) provider.Settings {
	var v provider.Settings
	if len(b.Labels) != 1 {
		s.addProblem(b.TypeRange, `write it as provider "NAME" { … }`, "a provider has one name")
	} else if v.Name = b.Labels[0]; hasPilotProvider(before, v.Name) {
		s.addProblem(b.LabelRanges[0], "give each its own name", "there are two providers %q", v.Name)
	}
	r := s.innerBlock(b)
	kind := ""
	r.readText("kind", &kind)
	v.Kind = provider.Kind(kind)
	r.readDuration("walltime", `"12h"`, &v.Walltime)
	r.readDuration("margin", `"5m"`, &v.Margin)
	r.readDuration("wait", `"30s"`, &v.Wait)
	r.readDuration("idle", `"5m"`, &v.Idle)
	r.readDuration("first_task", `"20m"`, &v.FirstTask)
	r.readDuration("join_within", `"15m"`, &v.JoinWithin)
	r.readCount("nodes_each", &v.NodesEach)
	r.readCount("max_pilots", &v.MaxPilots)
	r.readCount("max_queued", &v.MaxQueued)
	r.readSetting("max_node_hours", "500", func(text string) (err error) {
		v.MaxNodeHours, err = strconv.ParseFloat(text, 64)
		if err != nil || !(v.MaxNodeHours > 0 && v.MaxNodeHours < 1e9) {
			return fmt.Errorf("%s is no number of hours", text)
		}
		return nil
	})
	r.readBool("tasks_without_walltime", &v.WithoutWalltime)
	text := func(string, hcl.Range) {}
	r.readList("owners", `"ada"`, &v.Owners, text)
	r.readList("options", `"--account=physics"`, &v.Options, text)
	r.readList("via", `"ssh", "login.example"`, &v.Via, text)
	r.readList("wrap", `"apptainer", "exec", "image.sif"`, &v.Wrap, text)
	r.readText("directory", &v.Directory)
	r.readText("program", &v.Program)
	r.readText("before", &v.Before)
	r.readText("after", &v.After)
	r.readPilotNode(&v.Node)
	if inner := r.singleBlock("programs"); inner != nil {
		v.Programs = map[string][]string{}
		programs := r.innerBlock(inner)
		for _, verb := range provider.CommandVerbs() {
			var line []string
			if programs.readList(verb, `"./my-`+verb+`"`, &line, text); line != nil {
				v.Programs[verb] = line
			}
		}
		programs.reportUnknown()
	}
	r.reportUnknown()
	if len(s.errors) > 0 {
		return v
	}
	v = v.WithDefaults()
	for _, problem := range v.Check() {
		at := b.TypeRange
		if attr, ok := b.Body.Attributes[problem.Setting]; ok {
			at = attr.Expr.Range()
		}
		s.addProblem(at, problem.Remedy, "%s: %s", problem.Setting, problem.Text)
	}
	return v
}

// readPilotNode reads what is known of the nodes of a provider.
func (s *blockReader) readPilotNode(to *provider.NodeShape) {
	b := s.singleBlock("node")
	if b == nil {
		return
	}
	n := s.innerBlock(b)
	n.readCores("cpus", &to.Resources.CPU)
	n.readSize("memory", `"64GiB"`, &to.Resources.Memory)
	n.readSize("disk", `"100GiB"`, &to.Resources.Disk)
	n.readSetting("gpus", "4", func(text string) error {
		count, err := strconv.ParseUint(text, 10, 16)
		to.Resources.GPUs = int(count)
		return err
	})
	var attributes map[string]string
	n.readExpressions("attributes", &attributes)
	if len(attributes) > 0 {
		var ad strings.Builder
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			fmt.Fprintf(&ad, "%s = %s; ", name, attributes[name])
		}
		to.Attributes = "[" + ad.String() + "]"
	}
	n.reportUnknown()
}

// PilotProviderText returns a provider as a block of the file. Zero settings are left
// out.
func PilotProviderText(v *provider.Settings) string {
	file := fileWriter{&blockText{}}
	b := file.writeBlock("provider", v.Name)
	b.writeText("kind", string(v.Kind))
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"walltime", v.Walltime}, {"margin", v.Margin}, {"wait", v.Wait}, {"idle", v.Idle}, {"first_task", v.FirstTask},
		{"join_within", v.JoinWithin}} {
		if d.value > 0 {
			b.writeText(d.name, provider.SpanText(d.value))
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"nodes_each", v.NodesEach}, {"max_pilots", v.MaxPilots}, {"max_queued", v.MaxQueued}} {
		if n.value != 0 {
			b.writeNumber(n.name, n.value)
		}
	}
	if v.MaxNodeHours != 0 {
		b.to.setAttribute("max_node_hours", strconv.FormatFloat(v.MaxNodeHours, 'f', -1, 64))
	}
	if v.WithoutWalltime {
		b.writeBool("tasks_without_walltime", true)
	}
	b.writeList("owners", v.Owners)
	b.writeList("options", v.Options)
	b.writeList("via", v.Via)
	b.writeList("wrap", v.Wrap)
	b.writeText("directory", v.Directory)
	b.writeText("program", v.Program)
	b.writeText("before", v.Before)
	b.writeText("after", v.After)
	if r := v.Node.Resources; r != (roost.Resources{}) {
		n := b.writeBlock("node")
		if r.CPU > 0 {
			n.to.setAttribute("cpus", r.CPU.String())
		}
		n.writeSize("memory", r.Memory)
		n.writeSize("disk", r.Disk)
		if r.GPUs > 0 {
			n.writeNumber("gpus", r.GPUs)
		}
	}
	if len(v.Programs) > 0 {
		n := b.writeBlock("programs")
		for _, verb := range provider.CommandVerbs() {
			n.writeList(verb, v.Programs[verb])
		}
	}
	var text strings.Builder
	file.to.write(&text, "")
	return text.String()
}

// AddPilotProvider appends a provider to a file, which need not exist.
func AddPilotProvider(file string, v *provider.Settings) error {
	list, err := LoadPilots(file)
	if err != nil {
		return err
	}
	if hasPilotProvider(list, v.Name) {
		return fmt.Errorf("%s: %w: it has a provider %q already", file, roost.Conflict, v.Name)
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("providers %s: %w: %w", file, roost.NoInput, errorCause(err))
	}
	if text = bytes.TrimRight(text, "\n"); len(text) > 0 {
		text = append(text, '\n')
	}
	text = append(text, PilotProviderText(v)...)
	if _, _, err := parsePilots(file, text); err != nil {
		return err
	}
	return writePilots(file, bytes.TrimLeft(text, "\n"))
}

// RemovePilotProvider removes a provider from a file, and leaves all else as it is.
func RemovePilotProvider(file, name string) error {
	text, err := readFile("providers", file)
	if err != nil {
		return err
	}
	list, blocks, err := parsePilots(file, text)
	if err != nil {
		return err
	}
	for i, v := range list {
		if v.Name != name {
			continue
		}
		from, to := blocks[i].Range().Start.Byte, blocks[i].CloseBraceRange.End.Byte
		for to < len(text) && text[to] == '\n' {
			to++
		}
		return writePilots(file, slices.Concat(text[:from], text[to:]))
	}
	return fmt.Errorf("%s: %w: there is no provider %q", file, roost.NotFound, name)
}

func writePilots(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("%s: %w: %w", file, roost.NoOutput, errorCause(err))
	}
	if err := atomicfile.WriteDurable(file, text, 0o600); err != nil {
		return fmt.Errorf("%s: %w: %w", file, roost.NoOutput, err)
	}
	return nil
}
