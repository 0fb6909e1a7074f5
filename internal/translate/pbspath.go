package translate

import (
	"regexp"
	"strings"
)

// streams says where the output goes.
func (x *pbsScript) streams() {
	j := x.j
	out, err := x.out, x.err
	if x.join != "" {
		if x.join == "eo" && err != "" {
			out = err
		}
		err = ""
		j.set("join_output", "true")
	}
	if out == "" && err == "" {
		x.differs(0, "no -o, no -e", "PBS then writes NAME.oNUMBER and NAME.eNUMBER; here the output is kept, and roost logs shows it.")
	}
	if out != "" {
		j.set("stdout", x.stream("stdout", out).source())
	}
	if err != "" {
		j.set("stderr", x.stream("stderr", err).source())
	}
}

// pbsReference is what stands for something in the name of a file.
var pbsReference = regexp.MustCompile(`\$\{?(?:PBS_JOBID|PBS_JOBNAME|PBS_ARRAY_INDEX|PBS_ARRAYID|PBS_O_WORKDIR|HOME|USER)\}?|\^array_index\^`)

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
		out = out.add(map[bool]string{true: "/", false: ""}[s == "."] + x.j.name + map[string]string{"stdout": ".out", "stderr": ".err"}[setting])
	}
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
	case "PBS_JOBID":
		return jobNumber(out, p)
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
