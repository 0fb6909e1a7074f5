package flowplan

import (
	"io"
	"strings"

	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
)

// FlowFile is a flow in HCL, which package dag reads in the form of a DAG file.
type FlowFile struct {
	Name     string
	Settings submit.FlowSettings

	text     *submit.FlowText
	lines    []string // of the source
	mistakes []dag.Diagnostic
}

// TranslateFlow translates a flow in HCL. The file name of opts is that of messages.
func TranslateFlow(src []byte, opts submit.ParseOptions) *FlowFile {
	text, diags := submit.ReadFlow(src, opts)
	f := &FlowFile{Name: text.Name, Settings: text.Settings, text: text, lines: strings.Split(string(src), "\n")}
	for _, d := range submit.LineDiagnostics(diags) {
		f.mistakes = append(f.mistakes, dag.Diagnostic{IsWarning: d.IsWarning, File: opts.Filename, Line: d.Line,
			Column: d.Column, Width: d.Width, Summary: d.Summary, Detail: d.Detail})
	}
	return f
}

// Open returns the flow as a file that dag.Parse reads.
func (f *FlowFile) Open() io.ReadCloser { return openFlowFile{f, strings.NewReader(f.text.Text)} }

// openFlowFile is a FlowFile that is being read.
type openFlowFile struct {
	*FlowFile
	io.Reader
}

var _ dag.TranslatedFile = openFlowFile{}

// Close does nothing.
func (f openFlowFile) Close() error { return nil }

// Mistakes returns the diagnostics of the file.
func (f *FlowFile) Mistakes() []dag.Diagnostic { return f.mistakes }

// SourceLine returns a line of the file.
func (f *FlowFile) SourceLine(line int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	return strings.TrimRight(f.lines[line-1], "\r")
}

// Origin returns what a line of the DAG file was made from.
func (f *FlowFile) Origin(line int) dag.LineOrigin {
	if line < 1 || line > len(f.text.Lines) {
		return dag.LineOrigin{Line: 1, Column: 1}
	}
	at := f.text.Lines[line-1]
	rest := len(f.SourceLine(at.Start.Line)) - at.Start.Column + 1
	return dag.LineOrigin{Line: at.Start.Line, Column: at.Start.Column, Width: min(at.End.Byte-at.Start.Byte, rest)}
}
