package translate

import (
	"cmp"
	"regexp"
	"strings"
)

// streams says where the output goes.
func (x *pbsScript) streams() {
	j := x.j
	out, err := x.standard('o', x.out), x.standard('e', x.err)
	j.set("empty_output", "true") // clients take the files' being there for the end of the job
	if x.join != "" {
		if x.join == "eo" {
			out = err
		}
		err = ""
		j.set("join_output", "true")
	}
	j.set("stdout", x.stream("stdout", out).source())
	if err != "" {
		j.set("stderr", x.stream("stderr", err).source())
	}
	x.removal()
}

// standard is where a stream goes: -k keeps it at home, -o or -e names a file, and without them it is called after the job.
func (x *pbsScript) standard(letter byte, given string) string {
	usual := x.name + "." + string(letter) + "$PBS_JOBSEQ"
	if x.array != nil {
		usual += ".$PBS_ARRAY_INDEX"
	}
	switch {
	case strings.IndexByte(x.keep, letter) >= 0 && !strings.Contains(x.keep, "d"):
		return "$HOME/" + usual
	case given == "":
		return usual
	}
	return given
}

// removal says whose file goes when a task has succeeded: of joined streams that of the letter that gave it its name.
func (x *pbsScript) removal() {
	var gone []string
	if strings.Contains(x.remove, cmp.Or(x.join, "o")[:1]) {
		gone = append(gone, "stdout")
	}
	if x.join == "" && strings.Contains(x.remove, "e") {
		gone = append(gone, "stderr")
	}
	if len(gone) > 0 {
		x.j.set("remove_output", texts(gone))
	}
}

// pbsReference is what stands for something in the name of a file.
var pbsReference = regexp.MustCompile(`\$\{?(?:PBS_JOBID|PBS_JOBSEQ|PBS_JOBNAME|PBS_ARRAY_INDEX|PBS_ARRAYID|PBS_O_WORKDIR|HOME|USER)\}?|\^array_index\^`)

func (x *pbsScript) stream(setting, path string) text {
	if host, rest, ok := strings.Cut(path, ":"); ok && host != "" && !strings.Contains(host, "/") && rest != "" {
		x.differs(0, path, "Output goes to the machine where the job is submitted.")
		path = rest
	}
	path = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "localhost:"), "$PBS_O_WORKDIR/"), "${PBS_O_WORKDIR}/")
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(path, home); ok {
			path = "~/" + rest
		}
	}
	p := &pbsPath{x: x}
	var out text
	from := 0
	for _, m := range pbsReference.FindAllStringIndex(path, -1) {
		out = out.add(path[from:m[0]])
		out = p.one(out, strings.Trim(path[m[0]:m[1]], "${}"))
		from = m[1]
	}
	out = out.add(path[from:])
	if s, fixed := out.fixed(); fixed && s == "/dev/null" {
		return out
	}
	if s, fixed := out.fixed(); len(out) == 0 || fixed && (strings.HasSuffix(s, "/") || s == ".") {
		out = p.one(out.add(map[bool]string{true: "/", false: ""}[s == "."]), "PBS_JOBID")
		if x.j.index != "" {
			out = append(out.add("."), piece{expr: x.j.index})
			p.indexed = true
		}
		out = out.add(map[string]string{"stdout": ".OU", "stderr": ".ER"}[setting])
	}
	path = strings.NewReplacer("$PBS_JOBSEQ", "NUMBER", "$PBS_ARRAY_INDEX", "INDEX").Replace(path)
	if x.j.index != "" && !p.indexed {
		x.differs(0, path, "Each task of an array needs a file of its own: the index was added.")
		out = append(out.add("."), piece{expr: x.j.index})
	}
	if x.j.gang > 1 {
		x.differs(0, path, "Each task of a gang needs a file of its own: its number was added.")
		out = append(out.add("."), piece{expr: "task.index"})
	}
	return out
}

// pbsPath is the name of a file in the making.
type pbsPath struct {
	x       *pbsScript
	indexed bool
}

func (p *pbsPath) remark(why string) { p.x.differs(0, "-o, -e", why) }

// one appends what stands for one reference.
func (p *pbsPath) one(out text, name string) text {
	switch name {
	case "PBS_JOBSEQ": // what the usual names have
		return jobNumber(out)
	case "PBS_JOBID":
		p.remark("$PBS_JOBID is the number of the job in the name of a file here, without the server.")
		return jobNumber(out)
	case "PBS_JOBNAME":
		return out.add(p.x.name)
	case "^array_index^", "PBS_ARRAY_INDEX", "PBS_ARRAYID":
		if p.x.j.index == "" {
			return trimmed(out)
		}
		p.indexed = true
		return append(out, piece{expr: p.x.j.index})
	}
	p.remark("$" + name + " is not known in a job file, and left out.")
	return trimmed(out)
}
