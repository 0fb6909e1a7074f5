package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// jobBlock is a job block under construction.
type jobBlock struct {
	kind       string // of the block; "": a job
	name       string
	settings   map[string]string       // source of single values
	maps       map[string][]blockEntry // elements of settings that are maps
	checkpoint []blockEntry
	overrides  [][]blockEntry // other values for some tasks
	blocks     []innerBlock
	script     string
	variables  []foreignVariable  // variables of the other system that the script reads
	index      string             // expression for the index of an array, or ""
	gang       int                // tasks that start together; 0 or 1: no gang
	small      map[string]string  // for verify: replacements for a job of a few tasks
	items      *jobspec.ItemTable // rows in place of for_each; nil: none
	origins    map[string]Note    // by setting: the line that it comes from
	origin     Note               // of the settings that are set now
}

// innerBlock is a block within a job. Its kind has the label, if it has one.
type innerBlock struct {
	kind    string
	entries []blockEntry
	blocks  []innerBlock
}

// blockEntry is an element of a map, or a setting of a block, with the source of its
// value.
type blockEntry struct{ name, value string }

func newJob() *jobBlock {
	return &jobBlock{settings: map[string]string{}, maps: map[string][]blockEntry{}, origins: map[string]Note{}}
}

// setSource sets a value given as source.
func (j *jobBlock) setSource(name, source string) {
	j.settings[name] = source
	j.origins[name] = j.origin
}

func (j *jobBlock) setText(name, value string) { j.setSource(name, quotedText(value)) }

func (j *jobBlock) setInt(name string, n int) { j.setSource(name, strconv.Itoa(n)) }

// addToMap adds an element to a map; a later one of the same name wins.
func (j *jobBlock) addToMap(setting, name, source string) {
	list := j.maps[setting]
	j.origins[setting] = j.origin
	for i := range list {
		if list[i].name == name {
			list[i].value = source
			return
		}
	}
	j.maps[setting] = append(list, blockEntry{name, source})
}

// templateText is a text with expressions in it.
type templateText []templatePiece

type templatePiece struct{ fixed, expr string } // one of fixed and expr is set

// hclSource returns the text in HCL: in quotes, with the expressions in ${}.
func (t templateText) hclSource() string {
	var b strings.Builder
	b.WriteByte('"')
	for i, p := range t {
		if p.expr != "" {
			b.WriteString("${" + p.expr + "}")
			continue
		}
		s := escapedText(p.fixed)
		if i+1 < len(t) && t[i+1].expr != "" { // a $ or % before ${ would escape it
			if n := len(s); n > 0 && (s[n-1] == '$' || s[n-1] == '%') {
				s = s[:n-1] + `${"` + s[n-1:] + `"}`
			}
		}
		b.WriteString(s)
	}
	b.WriteByte('"')
	return b.String()
}

// fixedText returns the text if no part of it is an expression.
func (t templateText) fixedText() (string, bool) {
	var b strings.Builder
	for _, p := range t {
		if p.expr != "" {
			return "", false
		}
		b.WriteString(p.fixed)
	}
	return b.String(), true
}

// isSameForAll reports whether all tasks have the same text.
func (t templateText) isSameForAll() bool {
	return !slices.ContainsFunc(t, func(p templatePiece) bool { return p.expr != "" && p.expr != "task.job" })
}

// appendFixed appends fixed text, to the last piece if that is fixed, too.
func (t templateText) appendFixed(s string) templateText {
	if s == "" {
		return t
	}
	if n := len(t); n > 0 && t[n-1].expr == "" {
		t[n-1].fixed += s
		return t
	}
	return append(t, templatePiece{fixed: s})
}

var notInJobName = lazyregexp.New(`[^A-Za-z0-9_.+-]+`)

// newJobName makes a valid job name of a name in the other system, or of the file's.
func newJobName(want string) string {
	name := strings.TrimLeft(notInJobName().ReplaceAllString(want, "_"), "_.+-")
	if len(name) > 230 {
		name = name[:230]
	}
	if name == "" {
		return "job"
	}
	return name
}

// baseName returns the last element of the file name without its extension.
func (t *fileTranslation) baseName() string {
	name := t.file[strings.LastIndexByte(t.file, '/')+1:]
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	if name == "" || name == "-" {
		return "job"
	}
	return name
}

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// setMail sets which events are mailed, by the letters of qsub -m, and the recipients.
// Addresses alone select failures.
func (j *jobBlock) setMail(letters string, to []string) {
	if letters == "n" {
		return
	}
	var on, users []string
	for _, p := range []struct{ letter, word string }{{"a", "abort"}, {"b", "begin"}, {"e", "end"}, {"j", "tasks"}} {
		if strings.Contains(letters, p.letter) {
			on = append(on, p.word)
		}
	}
	for _, u := range to {
		if u = strings.TrimSpace(u); u != "" {
			users = append(users, u)
		}
	}
	if len(on) > 0 {
		j.setSource("mail_on", textListSource(on))
	}
	if len(users) > 0 {
		j.setSource("mail_to", textListSource(users))
	}
}
