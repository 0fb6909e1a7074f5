package submit

import "github.com/hashicorp/hcl/v2"

// LineDiagnostic is a diagnostic of a file of another language, with the one line that it
// is about.
type LineDiagnostic struct {
	IsWarning       bool
	File            string
	Line            int // 0: the file as a whole
	Column, Width   int // in bytes, from 1
	Source          string
	Summary, Detail string
}

// LineDiagnostics returns the diagnostics of a job file without their sources.
func LineDiagnostics(diags hcl.Diagnostics) []LineDiagnostic {
	list := make([]LineDiagnostic, 0, len(diags))
	for _, d := range diags {
		l := LineDiagnostic{IsWarning: d.Severity != hcl.DiagError, Summary: d.Summary, Detail: d.Detail}
		if at := d.Subject; at != nil {
			l.File, l.Line, l.Column, l.Width = at.Filename, at.Start.Line, at.Start.Column,
				max(1, at.End.Byte-at.Start.Byte)
		}
		list = append(list, l)
	}
	return list
}

// FormatLine formats a diagnostic for people, as [Format] does for those of job files.
func FormatLine(l LineDiagnostic, width int, color bool) string {
	d := newDiagnostic(nil, l.Summary, l.Detail)
	if l.IsWarning {
		d.Severity = hcl.DiagWarning
	}
	if l.Line == 0 {
		d.Summary = l.File + ": " + d.Summary
		return Format(hcl.Diagnostics{d}, nil, width, color)
	}
	start := hcl.Pos{Line: l.Line, Column: l.Column, Byte: l.Column - 1}
	d.Subject = &hcl.Range{Filename: l.File, Start: start,
		End: hcl.Pos{Line: l.Line, Column: l.Column + l.Width, Byte: start.Byte + l.Width}}
	return Format(hcl.Diagnostics{d}, []byte(l.Source), width, color)
}
