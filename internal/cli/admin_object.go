package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// The commands of administrators have words in common: without one they show, "set" makes
// or changes, "rm" takes away.

// administer chooses what to do by the first operand; without one it shows. Flags say
// what is to be set, but for those of naming, which say of what.
func administer(show func(c *invocation) error, verbs map[string]func(c *invocation) error,
	naming ...string) func(c *invocation) error {
	return func(c *invocation) error {
		if len(c.args) == 0 || c.args[0] == "show" {
			if len(c.args) > 1 {
				return usageErrorf("unexpected operand %q", c.args[1])
			}
			if err := c.refuseFlags("show"); err != nil {
				return err
			}
			return show(c)
		}
		verb := c.args[0]
		do := verbs[verb]
		if do == nil {
			names := []string{"show"}
			for name := range verbs {
				names = append(names, name)
			}
			slices.Sort(names)
			err := usageErrorf("there is no %q", verb)
			if n := suggest.Nearest(verb, names); n != "" {
				return withHint(err, fmt.Sprintf("did you mean: roost %s %s", c.cmd.name, n))
			}
			return withHint(err, "use one of: "+strings.Join(names, ", "))
		}
		if c.args = c.args[1:]; verb != "set" && verb != "give" {
			if err := c.refuseFlags(verb, naming...); err != nil {
				return err
			}
		}
		return do(c)
	}
}

// refuseFlags refuses flags that a verb would not look at: who says "rm ann --cpus 3"
// does not mean that all of it goes.
func (c *invocation) refuseFlags(verb string, looked ...string) error {
	looked = append([]string{"json"}, looked...)
	for _, f := range commonFlags() {
		looked = append(looked, f.Names()[0])
	}
	for _, f := range c.cmd.flags {
		if name := f.Names()[0]; c.isFlagSet(name) && !slices.Contains(looked, name) {
			return usageErrorf("--%s says nothing to %s", name, verb)
		}
	}
	return nil
}

// requireOperands refuses a command line that does not have as many operands as wanted
// names, "…" at the end for one or more of the last.
func (c *invocation) requireOperands(wanted ...string) error {
	n, most := len(wanted), len(wanted)
	if n > 0 && strings.HasSuffix(wanted[n-1], "…") {
		most = len(c.args)
	}
	if len(c.args) < n {
		return usageErrorf("%s is missing", strings.TrimSuffix(wanted[len(c.args)], "…"))
	}
	if len(c.args) > most {
		return usageErrorf("unexpected operand %q", c.args[most])
	}
	return nil
}

// cellObjects reads what the cell has of a kind.
func (c *invocation) cellObjects(kind string, into any) error {
	_, err := c.cellObjectsDigest(kind, into)
	return err
}

// cellObjectsDigest is shown with the digest of what there is of the kind.
func (c *invocation) cellObjectsDigest(kind string, into any) (digest []byte, err error) {
	reply, err := c.askCell(&wire.CellRequest{Verb: "show", Kind: kind})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reply.GetDocument(), into); err != nil {
		return nil, kindErrorf(roost.Internal, "what the negotiator says of %s cannot be read: %v", kind, err)
	}
	return reply.GetDigest(), nil
}

// attributedObject is an object of type T with who has set it.
type attributedObject[T any] struct {
	Name   string    `json:"name"`
	Object T         `json:"object"`
	By     string    `json:"set_by"`
	At     time.Time `json:"set_at"`
	Made   time.Time `json:"made_at"` // zero from a negotiator that does not say it
}

// showObjects prints the objects of one kind, as JSON under that name, or as a table.
func showObjects[T any](c *invocation, kind ledger.ObjectKind, name, none string, t *textTable,
	row func(o attributedObject[T]) []tableCell) error {
	var raw []json.RawMessage
	var all []attributedObject[T]
	reply, err := c.askCell(&wire.CellRequest{Verb: "show", Kind: string(kind)})
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &raw)
	}
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &all)
	}
	if err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{name: raw})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.stderr, none)
		return nil
	}
	t.columns = append(t.columns, tableColumn{head: "SET BY", minWidth: 6, dropPriority: 9})
	for _, o := range all {
		t.addRow(append(row(o), tableCell{printableText(o.By), dim})...)
	}
	t.dropEmptyColumns("SET BY")
	t.print(c.stdout, c.out)
	return nil
}

// objectPatch is what is to be changed of an object; nil takes a field away.
type objectPatch map[string]any

// patchObject has an object made or changed. Users in it that this host does not know
// must have used the pool, unless --force is said.
func (c *invocation) patchObject(kind ledger.ObjectKind, w objectPatch, users ...string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	force := c.flags.IsSet("force") && c.flag("force")
	if !force {
		if err := c.requireKnownUsers(users); err != nil {
			return err
		}
	}
	_, err = c.askCell(&wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(kind), Object: text,
		Strange: force})
	return err
}

// putObject has an object made; nothing is left of one that was there.
func (c *invocation) putObject(kind ledger.ObjectKind, w objectPatch) error {
	_, err := c.askCell(&wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(kind), Object: w.jsonText(),
		Whole: true, Strange: c.flag("force")})
	return err
}

// requireKnownUsers refuses users of whom this host does not know and who have not used
// the pool, each by his name.
func (c *invocation) requireKnownUsers(users []string) error {
	if users = slices.DeleteFunc(slices.Clone(users), func(u string) bool { return !unknownUser(u) }); len(users) == 0 {
		return nil
	}
	var s negotiator.ShareReport
	if err := c.cellObjects("shares", &s); err != nil {
		return err
	}
	var names []string
	for _, u := range s.Submitters {
		names = append(names, u.User)
	}
	for _, u := range users {
		if slices.Contains(names, u) {
			continue
		}
		err := kindErrorf(roost.Invalid, "there is no user %q on this node, and none of that name has ever used the "+
			"pool; --force sets it nevertheless", u)
		if n := suggest.Nearest(u, append(names, localUsers()...)); n != "" {
			return withHint(err, fmt.Sprintf("did you mean %q?", n))
		}
		return err
	}
	return nil
}

// localUsers are those of this host's own list, as far as it can be read: they are only
// suggestions.
func localUsers() (names []string) {
	text, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

func (c *invocation) removeObject(verb ledger.CommandVerb, kind ledger.ObjectKind, name string) error {
	_, err := c.askCell(&wire.CellRequest{Verb: string(verb), Kind: string(kind), Name: name})
	return err
}

// unknownUser reports whether this host does not know a user.
func unknownUser(name string) bool {
	_, err := user.Lookup(name)
	return err != nil
}

// jsonText is the wish as JSON; what it is made of always has a form in it, but for
// numbers that were looked at before.
func (w objectPatch) jsonText() []byte {
	text, _ := json.Marshal(w)
	return text
}

// parseSubmitter takes a name such as sci.chem.ann apart at the longest group that is
// known.
func (c *invocation) parseSubmitter(name string) (fairshare.Submitter, error) {
	groups, err := c.objectNames(ledger.KindGroup)
	if err != nil {
		return fairshare.Submitter{}, err
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '.' && groups[name[:i]] {
			return fairshare.Submitter{Group: name[:i], Owner: name[i+1:]}, nil
		}
	}
	return fairshare.Submitter{Owner: name}, nil
}

// subPatch is the part of a wish with that name, made if it is not there.
func (w objectPatch) subPatch(name string) objectPatch {
	inner, ok := w[name].(objectPatch)
	if !ok {
		inner = objectPatch{}
		w[name] = inner
	}
	return inner
}

// amountFlags takes in the flags for a vector: --cpus, --memory and so on, behind a
// prefix. "none" takes a bound away.
func (c *invocation) amountFlags(to func() objectPatch, prefix string, names ...string) error {
	for _, name := range names {
		flag := prefix + name
		if !c.isFlagSet(flag) {
			continue
		}
		field, value, err := parseAmount(name, c.stringFlag(flag))
		if err != nil {
			return usageErrorf("--%s: %v", flag, err)
		}
		to()[field] = value
	}
	return nil
}

// parseAmount reads the value of a flag, and says which field of an object it is.
func parseAmount(name, text string) (field string, value any, err error) {
	field = map[string]string{"memory": "memory_bytes", "disk": "disk_bytes", "walltime": "walltime_seconds"}[name]
	if field == "" {
		field = name
	}
	if text == "none" {
		return field, nil, nil
	}
	switch name {
	case "memory", "disk":
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return field, nil, fmt.Errorf("%q has no unit: write %[1]sGiB if that is what is meant", text)
		}
		b, err := roost.ParseBytes(text)
		return field, int64(b), err
	case "walltime":
		d, err := roost.ParseDuration(text)
		return field, int64(d / time.Second), err
	case "cpus", "floor", "ceiling", "cores", "factor", "fraction":
		return field, jsonNumber(text), isNumeric(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return field, nil, fmt.Errorf("%q is not a whole number, or \"none\"", text)
	}
	return field, n, nil
}

// jsonNumber is a number as it was written, so that nothing is lost on the way.
func jsonNumber(text string) any { return json.Number(text) }

func isNumeric(text string) error {
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil {
		return fmt.Errorf("%q is not a number that makes sense here, or \"none\"", text)
	}
	return nil
}

// timeRangeFlags takes in --from and --until.
func (c *invocation) timeRangeFlags(w objectPatch) error {
	for _, flag := range []string{"from", "until"} {
		if !c.isFlagSet(flag) {
			continue
		}
		if c.stringFlag(flag) == "none" {
			w[flag] = nil
			continue
		}
		t, err := c.parseWhen(c.stringFlag(flag))
		if err != nil {
			return usageErrorf("--%s: %v", flag, err)
		}
		w[flag] = t.UTC().Format(time.RFC3339)
	}
	return nil
}

// parseWhen reads a time: a date, a date and time of day, or how long from now.
func (c *invocation) parseWhen(text string) (time.Time, error) {
	if text == "now" {
		return c.now(), nil
	}
	if d, err := roost.ParseDuration(strings.TrimPrefix(text, "+")); err == nil {
		return c.now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		"2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time, as \"2026-03-01 08:00\", nor how long from now, as 2h", text)
}

// nameListFlag takes in a flag that lists names.
func (c *invocation) nameListFlag(w objectPatch, flag, field string) (list []string) {
	if !c.isFlagSet(flag) {
		return nil
	}
	for _, text := range c.stringsFlag(flag) {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if w[field] = list; len(list) == 1 && list[0] == "none" {
		w[field] = nil
		return nil
	}
	return list
}

// onOffFlag takes in a flag that is on or off.
func (c *invocation) onOffFlag(w objectPatch, flag, field string) error {
	if !c.isFlagSet(flag) {
		return nil
	}
	switch c.stringFlag(flag) {
	case "on", "yes", "true":
		w[field] = true
	case "off", "no", "false":
		w[field] = false
	default:
		return usageErrorf("--%s: %q is neither on nor off", flag, c.stringFlag(flag))
	}
	return nil
}

// untilText is a time for people in a table; what is no terminal gets it in UTC.
func (c *invocation) untilText(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !c.out.terminal:
		return t.UTC().Format(time.RFC3339)
	}
	return t.Local().Format("2006-01-02 15:04")
}

// boundText is a number of a table that may be missing.
func boundText[T any](p *T, text func(T) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}

func plainCores(c ledger.CoreCount) string { return roost.MilliCPU(c).String() }
func plainCount(n int64) string            { return strconv.FormatInt(n, 10) }

func forceFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "force", Usage: "also for users and nodes that nobody has seen yet"}
}

func timeFlags(what string) []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "from", Usage: "when " + what +
			" begins, a `TIME`: \"2026-03-01 08:00\", or how long from now, as 2h"},
		&ucli.StringFlag{Name: "until", Usage: "when it ends, a `TIME` likewise"},
	}
}

// objectNames are the names of what is set of a kind.
func (c *invocation) objectNames(kind ledger.ObjectKind) (map[string]bool, error) {
	var all []attributedObject[any]
	if err := c.cellObjects(string(kind), &all); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, o := range all {
		known[o.Name] = true
	}
	return known, nil
}
