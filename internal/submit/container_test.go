package submit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestImageInterpreter: the interpreter of a script is that of the image. The submit node
// may have it elsewhere, or not at all.
func TestImageInterpreter(t *testing.T) {
	for line, want := range map[string]string{
		"#!/usr/bin/env python3":              "shell python3",
		"#!/usr/bin/env -S Rscript --vanilla": "first line",
		"#!/opt/conda/bin/python -u":          "/opt/conda/bin/python [-u -c",
		"echo no interpreter is named":        "shell /bin/sh",
	} {
		src := "job \"x\" {\n  image = \"oci:/images/x\"\n  script = <<-EOT\n    " + line + "\n    1\n  EOT\n}\n"
		jobs, diags := ParseFile([]byte(src), testOptions("x.hcl"))
		if diags.HasErrors() || len(jobs) != 1 {
			t.Errorf("%s: %s", line, Format(diags, []byte(src), 100, false))
			continue
		}
		ad := jobs[0].Ad
		shell, isShell := ad.Str(roost.AttrShell)
		script, isScript := ad.Str(roost.AttrScript)
		cmd, _ := ad.Str(roost.AttrCmd)
		arguments, _ := ad.Strings(roost.AttrArguments)
		got := fmt.Sprint(cmd, " ", arguments)
		switch {
		case isShell:
			got = "shell " + shell
		case isScript && strings.HasPrefix(script, line+"\n"):
			got = "first line"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}
