package flowplan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/translate"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// descriptionForm is the language of a description; empty: that of job files.
type descriptionForm struct{ dialect translate.Dialect }

var jobBlock = lazyregexp.New(`(?m)^[ \t]*(job|variable|locals)[ \t]*("[^"\n]*"[ \t]*)?\{`)

// inlineJob matches the beginning of a job file in a DAG file. No line of a submit
// description is like that.
var inlineJob = lazyregexp.New(`^\s*job[ \t]+"[^"\n]*"[ \t]*\{`)

// formOf returns the language of a description. What is neither a script of another
// system nor a job file is a submit description of HTCondor.
func formOf(d description) descriptionForm {
	if d.isInline {
		if inlineJob().MatchString(d.text) {
			return descriptionForm{}
		}
		return descriptionForm{translate.Condor}
	}
	dialect := translate.Detect(d.text)
	if dialect == "" && !strings.HasSuffix(d.name, ".hcl") && !jobBlock().MatchString(d.text) {
		dialect = translate.Condor
	}
	if strings.HasSuffix(d.name, ".hcl") {
		dialect = ""
	}
	return descriptionForm{dialect}
}

// hasShapes reports whether the values of variables are text of the description.
func (f descriptionForm) hasShapes() bool { return f.dialect == translate.Condor }

// compile makes the job of some nodes. needed are the variables that have to be the same
// for all of them.
func (f descriptionForm) compile(c *compiler, d description, t *variableTable) (j compiledJob, needed []string,
	ok bool) {
	opts := c.options.Job
	opts.Dir, opts.Filename, opts.LateFiles = d.dir, d.name, true
	label := func(i int) string { return c.nodeText(t.nodes[i]) }
	text, nodes, owner := d.text, (*jobspec.ItemTable)(nil), map[string]string(nil)
	var translated translate.TranslatedFile
	if f.dialect == "" {
		nodes = c.plainColumns(t)
		nodes.Label, opts.Variables = label, nodes
	} else {
		source := translate.SourceOptions{Name: path.Base(d.name), From: f.dialect, Files: opts.Files, Dir: opts.Dir,
			Home: opts.Home, Environ: opts.Environ, Now: opts.Now, Seed: c.options.Seed, DefaultQueue: "1",
			SeparateItems: true}
		if f.dialect == translate.Condor {
			nodes, owner, ok = c.wordColumns(t, &source)
			if !ok {
				return j, nil, false
			}
		} else {
			nodes = c.plainColumns(t)
			opts.Variables = nodes
		}
		nodes.Label, source.Nodes = label, nodes
		var err error
		translated, err = translate.TranslateFile([]byte(d.text), source)
		if err != nil {
			c.report(t.nodes, dag.Diagnostic{File: d.name, Summary: "this is no description of a job",
				Detail: err.Error() + "."})
			return j, nil, false
		}
		if len(translated.Needed) > 0 {
			return j, ownersOf(translated.Needed, owner), false
		}
		if !c.reportNotes(d, t, translated.Notes) {
			return j, nil, false
		}
		text, opts.Items = translated.Text, translated.Items
	}
	jobs, diags := submit.ParseFile([]byte(text), opts)
	if names := submit.NeededVariables(diags); len(names) > 0 {
		return j, names, false
	}
	if !c.reportDiagnostics(d, t, submit.LineDiagnostics(diags), &translated) {
		return j, nil, false
	}
	if len(jobs) != 1 {
		c.report(t.nodes, dag.Diagnostic{File: d.name, Summary: fmt.Sprintf("it describes %d jobs", len(jobs)),
			Detail: "A node runs one job, which may have many tasks. Write one queue command, or one job block, and " +
				"a node for each of the others."})
		return j, nil, false
	}
	t.isUniform = nodes.Rows == 1
	j = compiledJob{job: jobs[0], columns: jobs[0].Columns, perNode: jobs[0].Count / nodes.Rows}
	return j, nil, true
}

// ownersOf returns the variables to which columns belong.
func ownersOf(columns []string, owner map[string]string) (names []string) {
	for _, column := range columns {
		if name := owner[column]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// rows is the number of rows that stand for the nodes: one, if all have the same values.
func (t *variableTable) rows() int {
	for i := range t.variables {
		if _, ok := t.variables[i].constant(); !ok {
			return len(t.nodes)
		}
	}
	return 1
}

// plainColumns has a column for each variable, of whole values.
func (c *compiler) plainColumns(t *variableTable) *jobspec.ItemTable {
	table := &jobspec.ItemTable{Rows: t.rows(), Deferred: DeferredColumns()}
	for _, v := range t.variables {
		if !isName(v.name) {
			continue // +Attribute: only submit descriptions have them
		}
		values := make([]string, table.Rows)
		for i := range values {
			values[i] = c.flow.Texts.Text(v.values[i])
		}
		table.Add(v.name, values)
	}
	return table
}

var namePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isName(s string) bool { return namePattern().MatchString(s) }

// wordColumns has a column for each word of a variable that differs between nodes. It
// sets the macros of the translation. owner says to which variable a column belongs.
func (c *compiler) wordColumns(t *variableTable, source *translate.SourceOptions) (table *jobspec.ItemTable,
	owner map[string]string, ok bool) {
	table = &jobspec.ItemTable{Rows: t.rows(), Deferred: DeferredColumns()}
	owner = map[string]string{}
	for _, name := range DeferredColumns() {
		source.Macros = append(source.Macros, name+" = "+translate.Reference(name))
	}
	for _, v := range t.variables {
		value := ""
		if id, same := v.constant(); same {
			value = c.flow.Texts.Text(id)
			if strings.ContainsRune(value, 0) {
				c.report(t.nodes, dag.Diagnostic{Summary: "the variable " + v.name + " has a NUL in it",
					Detail: "A text ends there for programs. Remove it."})
				return nil, nil, false
			}
		} else {
			value = c.addWords(t, table, v, owner)
		}
		line := v.name + " = " + value
		if v.places[0] == dag.Appended {
			source.Append = append(source.Append, line)
		} else {
			source.Macros = append(source.Macros, line)
		}
	}
	return table, owner, true
}

// addWords adds the columns of a variable, and returns its value with references to them.
func (c *compiler) addWords(t *variableTable, table *jobspec.ItemTable, v nodeVariable,
	owner map[string]string) string {
	var text strings.Builder
	var columns [][]string
	forEachWord(c.flow.Texts.Bytes(v.values[0]), func(part []byte, isWord bool) {
		if !isWord {
			text.Write(part)
			return
		}
		name := fmt.Sprintf("%s_%d", strings.NewReplacer("+", "", ".", "_").Replace(v.name), len(columns)+1)
		for owner[name] != "" || slices.Contains(table.Deferred, name) {
			name += "_"
		}
		owner[name] = v.name
		columns = append(columns, make([]string, len(t.nodes)))
		table.Add(name, columns[len(columns)-1])
		text.WriteString(translate.Reference(name))
	})
	for i, id := range v.values {
		n := 0
		value := c.flow.Texts.Text(id)
		at := 0
		forEachWord([]byte(value), func(part []byte, isWord bool) {
			if isWord {
				columns[n][i] = value[at : at+len(part)]
				n++
			}
			at += len(part)
		})
	}
	return text.String()
}

func containsReference(text, name string) bool { return strings.Contains(text, "$("+name+")") }

// reportDiagnostics reports what is wrong with a job file, or with what a description was
// translated to.
func (c *compiler) reportDiagnostics(d description, t *variableTable, diags []submit.LineDiagnostic,
	translated *translate.TranslatedFile) bool {
	good := true
	for _, one := range diags {
		out := dag.Diagnostic{IsWarning: one.IsWarning, File: d.name, Line: one.Line, Column: one.Column,
			Width: one.Width, Summary: one.Summary, Detail: one.Detail}
		if translated.Text != "" {
			origin, _ := translated.Origin(one.Line)
			out.Line, out.Source, out.Column, out.Width = origin.Line, origin.Source, 1, len(origin.Source)
			if origin.File != "" {
				out.File = origin.File
			}
		} else if out.Line > 0 {
			out.Source = lineOf(d.text, out.Line)
		}
		if out.File == d.name && out.Line > 0 {
			out.Line += d.before
		}
		good = good && out.IsWarning
		c.report(t.nodes, out)
	}
	return good
}

// reportNotes reports the notes of a translation.
func (c *compiler) reportNotes(d description, t *variableTable, notes []translate.Note) bool {
	good := true
	for _, n := range notes {
		out := dag.Diagnostic{IsWarning: n.Kind != translate.Mistake, File: d.name, Line: n.Line, Source: n.Source,
			Column: 1, Width: len(n.Source), Detail: n.Reason,
			Summary: map[translate.NoteKind]string{translate.Different: "this has another meaning here",
				translate.Lost: "this is not carried over", translate.Mistake: "this line cannot be used"}[n.Kind]}
		if n.File != "" {
			out.File = n.File
		} else if out.Line > 0 {
			out.Line += d.before
		}
		good = good && out.IsWarning
		c.report(t.nodes, out)
	}
	return good
}

func lineOf(text string, line int) string {
	for l := range strings.Lines(text) {
		if line--; line == 0 {
			return strings.TrimRight(l, "\r\n")
		}
	}
	return ""
}

// nodeText names a node for messages.
func (c *compiler) nodeText(id graph.NodeID) string {
	n := c.flow.Graph.Node(id)
	return fmt.Sprintf("node %s (%s:%d)", c.flow.Graph.Name(id), c.flow.Files[n.File], n.Line)
}

// report reports a mistake once, with the nodes that it concerns.
func (c *compiler) report(nodes []graph.NodeID, d dag.Diagnostic) {
	key := fmt.Sprintf("%s %d %s %s", d.File, d.Line, d.Summary, d.Detail)
	if c.reported[key] {
		return
	}
	c.reported[key] = true
	who := "It is for " + c.nodeText(nodes[0])
	if n := len(nodes); n > 1 {
		who += fmt.Sprintf(" and %d more", n-1)
	}
	d.Detail = strings.TrimSpace(d.Detail) + " " + who + "."
	if !d.IsWarning {
		if c.diags.Errors++; d.IsMissing {
			c.diags.Missing++
		}
	}
	if d.File == "" {
		n := c.flow.Graph.Node(nodes[0])
		d.File, d.Line = c.flow.Files[n.File], int(n.Line)
	}
	if len(c.diags.List) < dag.MaxDiagnostics {
		c.diags.List = append(c.diags.List, d)
	}
}
