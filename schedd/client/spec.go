package client

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// JobSpec describes a job to submit. The zero value of a field is the default of the
// setting in roost-job(5). A job needs a Command or a Script.
type JobSpec struct {
	Name        string
	Command     []string // the program with its arguments, run without a shell
	Script      string   // the text of a program, which the interpreter of its first line runs
	Count       int      // tasks; 0: one, and the job is no array
	CPUs        float64
	Memory      int64 // bytes
	Disk        int64 // bytes
	GPUs        int
	Walltime    time.Duration
	Environment map[string]string
	Directory   string // empty: that of this process
	Stdin       string
	Stdout      string
	Stderr      string
	Inputs      []string
	Outputs     []string
	Queue       string
	Retries     int
	Hold        bool
	DependsOn   []string // ids of jobs that must end well before
	Labels      map[string]string

	// Settings are further settings by their names. A value is an expression of a job
	// file as it stands there: "true", "\"text\"" or Quote(text), "[1, 2]".
	Settings map[string]string
}

// Quote returns a text as an expression of a job file. Each task replaces nothing in it.
func Quote(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(QuoteTemplate(text))
}

// QuoteTemplate is Quote for a text in which each task replaces ${task.index} and so on.
func QuoteTemplate(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 32 || c == 127:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func quoteMap(m map[string]string) string {
	entries := make([]string, 0, len(m))
	for name, value := range m {
		entries = append(entries, Quote(name)+" = "+Quote(value))
	}
	slices.Sort(entries)
	return "{ " + strings.Join(entries, ", ") + " }"
}

// jobFile returns the text of a job file with the job.
func (s *JobSpec) jobFile() string {
	settings := map[string]string{}
	text := func(name, value string) {
		if value != "" {
			settings[name] = Quote(value)
		}
	}
	list := func(name string, value []string) {
		if len(value) > 0 {
			settings[name] = quoteList(value)
		}
	}
	number := func(name string, value float64) {
		if value != 0 {
			settings[name] = strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	size := func(name string, bytes int64) {
		if bytes > 0 {
			settings[name] = fmt.Sprintf("%q", fmt.Sprintf("%dK", (bytes+1023)/1024))
		}
	}
	list("command", s.Command)
	text("script", s.Script)
	number("count", float64(s.Count))
	number("cpus", s.CPUs)
	size("memory", s.Memory)
	size("disk", s.Disk)
	number("gpus", float64(s.GPUs))
	if s.Walltime > 0 {
		settings["walltime"] = fmt.Sprintf("%q", strconv.FormatFloat(s.Walltime.Seconds(), 'f', -1, 64)+"s")
	}
	if len(s.Environment) > 0 {
		settings["environment"] = quoteMap(s.Environment)
	}
	text("directory", s.Directory)
	text("stdin", s.Stdin)
	text("stdout", s.Stdout)
	text("stderr", s.Stderr)
	list("inputs", s.Inputs)
	list("outputs", s.Outputs)
	text("queue", s.Queue)
	number("retries", float64(s.Retries))
	if s.Hold {
		settings["hold"] = "true"
	}
	list("depends_on", s.DependsOn)
	if len(s.Labels) > 0 {
		settings["labels"] = quoteMap(s.Labels)
	}
	for name, value := range s.Settings {
		settings[name] = value
	}
	lines := make([]string, 0, len(settings))
	for name, value := range settings {
		lines = append(lines, "  "+name+" = "+value+"\n")
	}
	slices.Sort(lines)
	name := s.Name
	if name == "" {
		name = "job"
	}
	return "job " + Quote(name) + " {\n" + strings.Join(lines, "") + "}\n"
}
