package translate

import (
	"errors"
	"strings"
)

// setFiles sets the files that are read and written.
func (q *condorJob) setFiles() {
	j := q.job
	q.carryOver(func(s submitSetting) { j.setSource("stdin", q.expandMacros(s.value).hclSource()) }, "input", "stdin")
	q.carryOver(func(s submitSetting) { q.setStream("stdout", s) }, "output", "stdout")
	q.carryOver(func(s submitSetting) { q.setStream("stderr", s) }, "error", "stderr")
	q.carryOver(func(s submitSetting) { j.setSource("user_log", q.expandMacros(s.value).hclSource()) }, "log")
	q.carryOver(func(s submitSetting) {
		v, _ := q.fixedValue(s)
		mode, ok := map[string]string{"yes": "always", "true": "always", "no": "never", "false": "never",
			"if_needed": "auto"}[strings.ToLower(v)]
		if !ok {
			q.noteCommandMistake(s, "It is YES, NO or IF_NEEDED.")
			return
		}
		j.setText("transfer", mode)
	}, "should_transfer_files")
	q.carryOver(func(s submitSetting) {
		if v, _ := q.fixedValue(s); !strings.EqualFold(v, "ON_EXIT") {
			q.noteDifferenceAt(s, "Output comes back when a task has ended. To continue elsewhere it needs a "+
				"checkpoint block with method = \"self\".")
		}
	}, "when_to_transfer_output")
	q.carryOver(q.setInputs, "transfer_input_files")
	q.carryOver(q.setOutputs, "transfer_output_files")
	q.carryOver(q.setRemaps, "transfer_output_remaps")
	q.carryOver(q.setDestination, "output_destination")
	q.carryOver(func(s submitSetting) {
		q.noteCommandLost(s, "Keys are a secret of yours at the submit node: roost secret set s3 <~/.aws/credentials.")
	}, "aws_access_key_id_file", "aws_secret_access_key_file")
}

// objectScheme begins the name of an object.
const objectScheme = "s3://"

// setDestination has the files that come back go below a prefix of an object store.
func (q *condorJob) setDestination(s submitSetting) {
	to := strings.Trim(strings.TrimSpace(q.flatText(s.value, 0)), `"`)
	list, ok := q.commandValue("transfer_output_files")
	switch {
	case !strings.HasPrefix(to, objectScheme):
		q.noteCommandLost(s, "Files go to the submit node, or to an object store: s3://BUCKET/PREFIX/.")
		return
	case !ok:
		q.noteCommandLost(s, "Name the files that go there in transfer_output_files.")
		return
	}
	delete(q.job.settings, "outputs")
	for _, f := range strings.Split(q.flatText(list.value, 0), ",") {
		name, fixed := q.assembleText(strings.Trim(strings.TrimSpace(f), `"`)).fixedText()
		if !fixed || name == "" {
			q.noteCommandLost(s, "A name in transfer_output_files has to be the same for all jobs.")
			continue
		}
		q.job.addToMap("outputs", name, q.assembleText(strings.TrimSuffix(to, "/")+"/").hclSource())
	}
}

// setInputs sets the files that are sent. HTCondor calls a file by the last element of
// its name unless preserve_relative_paths is set. Roost does so with an absolute name.
func (q *condorJob) setInputs(s submitSetting) {
	preserved := false
	if p, ok := q.commandValue("preserve_relative_paths"); ok {
		preserved = parseBool(p.value)
	}
	base, hasBase := q.jobDirectory()
	isMoved := false
	input := func(values []string) (string, error) {
		f := values[0]
		switch {
		case strings.HasPrefix(f, objectScheme):
			return f, nil
		case strings.Contains(f, "://"):
			return "", errors.New("only URLs of objects, s3://BUCKET/KEY, are fetched; let the program do it")
		case len(f) > 1 && strings.HasSuffix(f, "/"):
			q.noteDifferenceAt(s, "A directory is brought as it is, with its name; with a / at the end "+
				"HTCondor brings what is in it.")
			f = strings.TrimRight(f, "/")
		}
		switch {
		case !strings.Contains(f, "/") || f[0] == '/' || f[0] == '~' || preserved:
		case q.options.Dir == "":
			q.noteDifferenceAt(s, "A file has the same name on the machine as here; HTCondor takes "+
				"the last element of the name.")
		case hasBase:
			f, isMoved = base+"/"+f, true
		}
		return f, nil
	}
	var list []string
	for _, f := range strings.Split(q.flatText(s.value, 0), ",") {
		if f = strings.Trim(strings.TrimSpace(f), `"`); f == "" {
			continue
		}
		text, err := q.deriveText("input", []string{f}, false, input)
		switch {
		case err == errNotComputed:
			text = f
		case err != nil:
			q.noteCommandLost(s, err.Error()+".")
			continue
		}
		list = append(list, q.assembleText(text).hclSource())
	}
	if isMoved && q.job.settings["transfer"] == "" {
		q.job.setText("transfer", "always")
	}
	if len(list) > 0 {
		q.job.setSource("inputs", listSource(list))
	}
}

// jobDirectory is the absolute directory of the job, if all tasks have the same.
func (q *condorJob) jobDirectory() (string, bool) {
	s, ok := q.commandValue("initialdir", "initial_dir", "job_iwd")
	if !ok {
		return strings.TrimSuffix(q.absolutePath("."), "/"), true
	}
	dir, ok := q.expandMacros(s.value).fixedText()
	return strings.TrimSuffix(q.absolutePath(dir), "/"), ok
}

// setOutputs sets the files that come back.
func (q *condorJob) setOutputs(s submitSetting) {
	list := []string{}
	for _, f := range strings.Split(q.flatText(s.value, 0), ",") {
		if f = strings.Trim(strings.TrimSpace(f), `"`); f != "" {
			list = append(list, q.assembleText(f).hclSource())
		}
	}
	if len(list) > 0 || strings.TrimSpace(s.value) == `""` {
		q.job.setSource("outputs", listSource(list))
	}
}

// setRemaps sets the names that files get when they come back.
func (q *condorJob) setRemaps(s submitSetting) {
	named := map[string]bool{}
	value := strings.Trim(strings.TrimSpace(q.flatText(s.value, 0)), `"`)
	for _, pair := range strings.Split(value, ";") {
		from, to, ok := strings.Cut(pair, "=")
		name, fixed := q.assembleText(strings.TrimSpace(from)).fixedText()
		to = strings.TrimSpace(to)
		switch {
		case strings.TrimSpace(pair) == "":
			continue
		case !fixed && q.needNodes(q.assembleText(strings.TrimSpace(from))):
			continue
		case !ok || !fixed || name == "" || to == "":
			q.noteCommandLost(s, "One of these is no NAME = NEW_NAME.")
			continue
		case strings.HasPrefix(to, objectScheme):
		case strings.HasPrefix(to, "/") || strings.Contains(to, "://"):
			q.noteCommandLost(s, "Files come back below the job's directory; set initialdir to another one.")
			continue
		}
		named[name] = true
		q.job.addToMap("outputs", name, q.assembleText(to).hclSource())
	}
	if len(named) == 0 {
		return
	}
	delete(q.job.settings, "outputs")
	list, ok := q.commandValue("transfer_output_files")
	if !ok {
		q.noteDifferenceAt(s, "Only these files come back; name the others in transfer_output_files.")
		return
	}
	for _, f := range strings.Split(q.flatText(list.value, 0), ",") {
		if name, fixed := q.assembleText(strings.TrimSpace(f)).fixedText(); fixed && name != "" && !named[name] {
			q.job.addToMap("outputs", name, quotedText(name))
		}
	}
}

// setStream sets the file of a standard stream. Each of several tasks gets a file of its
// own.
func (q *condorJob) setStream(name string, s submitSetting) {
	t := q.expandMacros(strings.Trim(s.value, `"`))
	fixed, same := t.fixedText()
	if same && fixed == "" || len(t) == 0 {
		return
	}
	if q.isSeveral && t.isSameForAll() && fixed != "/dev/null" {
		t = append(t.appendFixed("."), templatePiece{expr: "task.index"})
		q.noteDifferenceAt(s, "Each task needs a file of its own: its number was added.")
	}
	q.job.setSource(name, t.hclSource())
}
