package translate

import (
	"cmp"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// setStreams sets the output files.
func (x *pbsScript) setStreams() {
	j := x.job
	out, err := x.streamPath('o', x.out), x.streamPath('e', x.err)
	j.setSource("empty_output", "true") // clients take the files' existence for the end of the job
	if x.join != "" {
		if x.join == "eo" {
			out = err
		}
		err = ""
		j.setSource("join_output", "true")
	}
	j.setSource("stdout", x.setStream("stdout", out).hclSource())
	if err != "" {
		j.setSource("stderr", x.setStream("stderr", err).hclSource())
	}
	x.setRemoval()
}

// streamPath returns the file of a stream. -k puts it into the home directory, -o or -e
// names it, and otherwise it is named after the job.
func (x *pbsScript) streamPath(letter byte, given string) string {
	usual := x.name + "." + string(letter) + "$PBS_JOBSEQ"
	if x.array != nil {
		usual += ".$PBS_ARRAY_INDEX"
	}
	switch {
	case strings.IndexByte(x.keepOnNode, letter) >= 0 && !strings.Contains(x.keepOnNode, "d"):
		return "$HOME/" + usual
	case given == "":
		return usual
	}
	return given
}

// setRemoval sets which output is removed after success. For joined streams it is that of
// the first letter of -j.
func (x *pbsScript) setRemoval() {
	var gone []string
	if strings.Contains(x.remove, cmp.Or(x.join, "o")[:1]) {
		gone = append(gone, "stdout")
	}
	if x.join == "" && strings.Contains(x.remove, "e") {
		gone = append(gone, "stderr")
	}
	if len(gone) > 0 {
		x.job.setSource("remove_output", textListSource(gone))
	}
}

// pbsReference matches a reference in a file name.
var pbsReference = lazyregexp.New(
	`\$\{?(?:PBS_JOBID|PBS_JOBSEQ|PBS_JOBNAME|PBS_ARRAY_INDEX|PBS_ARRAYID|PBS_O_WORKDIR|HOME|USER)\}?|\^array_index\^`,
)

func (x *pbsScript) setStream(setting, path string) templateText {
	if host, rest, ok := strings.Cut(path, ":"); ok && host != "" && !strings.Contains(host, "/") && rest != "" {
		x.noteDifference(0, path, "Output goes to the machine where the job is submitted.")
		path = rest
	}
	path = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "localhost:"), "$PBS_O_WORKDIR/"),
		"${PBS_O_WORKDIR}/")
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(path, home); ok {
			path = "~/" + rest
		}
	}
	p := &pbsPath{script: x}
	var out templateText
	from := 0
	for _, m := range pbsReference().FindAllStringIndex(path, -1) {
		out = out.appendFixed(path[from:m[0]])
		out = p.appendReference(out, strings.Trim(path[m[0]:m[1]], "${}"))
		from = m[1]
	}
	out = out.appendFixed(path[from:])
	if s, fixed := out.fixedText(); fixed && s == "/dev/null" {
		return out
	}
	if s, fixed := out.fixedText(); len(out) == 0 || fixed && (strings.HasSuffix(s, "/") || s == ".") {
		out = p.appendReference(out.appendFixed(map[bool]string{true: "/", false: ""}[s == "."]), "PBS_JOBID")
		if x.job.index != "" {
			out = append(out.appendFixed("."), templatePiece{expr: x.job.index})
			p.indexed = true
		}
		out = out.appendFixed(map[string]string{"stdout": ".OU", "stderr": ".ER"}[setting])
	}
	path = strings.NewReplacer("$PBS_JOBSEQ", "NUMBER", "$PBS_ARRAY_INDEX", "INDEX").Replace(path)
	if x.job.index != "" && !p.indexed {
		x.noteDifference(0, path, "Each task of an array needs a file of its own: the index was added.")
		out = append(out.appendFixed("."), templatePiece{expr: x.job.index})
	}
	if x.job.gang > 1 {
		x.noteDifference(0, path, "Each task of a gang needs a file of its own: its number was added.")
		out = append(out.appendFixed("."), templatePiece{expr: "task.index"})
	}
	return out
}

// pbsPath is a file name under construction.
type pbsPath struct {
	script  *pbsScript
	indexed bool
}

func (p *pbsPath) remark(why string) { p.script.noteDifference(0, "-o, -e", why) }

// appendReference appends the replacement of one reference.
func (p *pbsPath) appendReference(out templateText, name string) templateText {
	switch name {
	case "PBS_JOBSEQ": // in the default names
		return appendJobNumber(out)
	case "PBS_JOBID":
		p.remark("$PBS_JOBID is the number of the job in the name of a file here, without the server.")
		return appendJobNumber(out)
	case "PBS_JOBNAME":
		return out.appendFixed(p.script.name)
	case "^array_index^", "PBS_ARRAY_INDEX", "PBS_ARRAYID":
		if p.script.job.index == "" {
			return trimSeparator(out)
		}
		p.indexed = true
		return append(out, templatePiece{expr: p.script.job.index})
	}
	p.remark("$" + name + " is not known in a job file, and left out.")
	return trimSeparator(out)
}
