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
	"github.com/roost-batch/roost/internal/spell"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

// The commands of administrators have words in common: without one they show, "set" makes or changes, "rm" takes away.

// administer chooses what to do by the first operand; without one it shows. Flags say what is to be set, but for those of naming, which say of what.
func administer(show func(c *call) error, verbs map[string]func(c *call) error, naming ...string) func(c *call) error {
	return func(c *call) error {
		if len(c.args) == 0 || c.args[0] == "show" {
			if len(c.args) > 1 {
				return usage("unexpected operand %q", c.args[1])
			}
			if err := c.bare("show"); err != nil {
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
			err := usage("there is no %q", verb)
			if n := spell.Nearest(verb, names); n != "" {
				return advise(err, fmt.Sprintf("did you mean: roost %s %s", c.cmd.name, n))
			}
			return advise(err, "use one of: "+strings.Join(names, ", "))
		}
		if c.args = c.args[1:]; verb != "set" && verb != "give" {
			if err := c.bare(verb, naming...); err != nil {
				return err
			}
		}
		return do(c)
	}
}

// bare refuses flags that a verb would not look at: who says "rm ann --cpus 3" does not mean that all of it goes.
func (c *call) bare(verb string, looked ...string) error {
	looked = append([]string{"json"}, looked...)
	for _, f := range everywhere() {
		looked = append(looked, f.Names()[0])
	}
	for _, f := range c.cmd.flags {
		if name := f.Names()[0]; c.given(name) && !slices.Contains(looked, name) {
			return usage("--%s says nothing to %s", name, verb)
		}
	}
	return nil
}

// operands refuses a command line that does not have as many operands as wanted names, "…" at the end for one or more of the last.
func (c *call) operands(wanted ...string) error {
	n, most := len(wanted), len(wanted)
	if n > 0 && strings.HasSuffix(wanted[n-1], "…") {
		most = len(c.args)
	}
	if len(c.args) < n {
		return usage("%s is missing", strings.TrimSuffix(wanted[len(c.args)], "…"))
	}
	if len(c.args) > most {
		return usage("unexpected operand %q", c.args[most])
	}
	return nil
}

// shown reads what the cell has of a kind.
func (c *call) shown(kind string, into any) error {
	_, err := c.shownAs(kind, into)
	return err
}

// shownAs is shown with the digest of what there is of the kind.
func (c *call) shownAs(kind string, into any) (digest []byte, err error) {
	reply, err := c.cell(&wire.CellRequest{Verb: "show", Kind: kind})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reply.GetDocument(), into); err != nil {
		return nil, problem(roost.Internal, "what the negotiator says of %s cannot be read: %v", kind, err)
	}
	return reply.GetDigest(), nil
}

// entered is an object of type T with who has set it.
type entered[T any] struct {
	Name   string    `json:"name"`
	Object T         `json:"object"`
	By     string    `json:"set_by"`
	At     time.Time `json:"set_at"`
	Made   time.Time `json:"made_at"` // zero from a negotiator that does not say it
}

// show prints the objects of one kind, as JSON under that name, or as a table.
func show[T any](c *call, kind ledger.Kind, name, none string, t *table, row func(o entered[T]) []cell) error {
	var raw []json.RawMessage
	var all []entered[T]
	reply, err := c.cell(&wire.CellRequest{Verb: "show", Kind: string(kind)})
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &raw)
	}
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &all)
	}
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(c.stdout, document{name: raw})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.stderr, none)
		return nil
	}
	t.columns = append(t.columns, column{head: "SET BY", least: 6, spare: 9})
	for _, o := range all {
		t.add(append(row(o), cell{printable(o.By), dim})...)
	}
	t.drop("SET BY")
	t.print(c.stdout, c.out)
	return nil
}

// wish is what is to be changed of an object; nil takes a field away.
type wish map[string]any

// set has an object made or changed. Users in it that this host does not know must have used the pool, unless --force is said.
func (c *call) set(kind ledger.Kind, w wish, users ...string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	force := c.flags.IsSet("force") && c.flag("force")
	if !force {
		if err := c.known(users); err != nil {
			return err
		}
	}
	_, err = c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(kind), Object: text, Strange: force})
	return err
}

// put has an object made; nothing is left of one that was there.
func (c *call) put(kind ledger.Kind, w wish) error {
	_, err := c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(kind), Object: w.text(), Whole: true, Strange: c.flag("force")})
	return err
}

// known refuses users of whom this host does not know and who have not used the pool, each by his name.
func (c *call) known(users []string) error {
	if users = slices.DeleteFunc(slices.Clone(users), func(u string) bool { return !stranger(u) }); len(users) == 0 {
		return nil
	}
	var s negotiator.Shares
	if err := c.shown("shares", &s); err != nil {
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
		err := problem(roost.Invalid, "there is no user %q on this node, and none of that name has ever used the pool; --force sets it nevertheless", u)
		if n := spell.Nearest(u, append(names, localUsers()...)); n != "" {
			return advise(err, fmt.Sprintf("did you mean %q?", n))
		}
		return err
	}
	return nil
}

// localUsers are those of this host's own list, as far as it can be read: they are only suggestions.
func localUsers() (names []string) {
	text, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

func (c *call) undo(verb ledger.Verb, kind ledger.Kind, name string) error {
	_, err := c.cell(&wire.CellRequest{Verb: string(verb), Kind: string(kind), Name: name})
	return err
}

// stranger reports whether this host does not know a user.
func stranger(name string) bool {
	_, err := user.Lookup(name)
	return err != nil
}

// text is the wish as JSON; what it is made of always has a form in it, but for numbers that were looked at before.
func (w wish) text() []byte {
	text, _ := json.Marshal(w)
	return text
}

// submitter takes a name such as sci.chem.ann apart at the longest group that is known.
func (c *call) submitter(name string) (share.Submitter, error) {
	groups, err := c.objectNames(ledger.KindGroup)
	if err != nil {
		return share.Submitter{}, err
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '.' && groups[name[:i]] {
			return share.Submitter{Group: name[:i], Owner: name[i+1:]}, nil
		}
	}
	return share.Submitter{Owner: name}, nil
}

// within is the part of a wish with that name, made if it is not there.
func (w wish) within(name string) wish {
	inner, ok := w[name].(wish)
	if !ok {
		inner = wish{}
		w[name] = inner
	}
	return inner
}

// amounts takes in the flags for a vector: --cpus, --memory and so on, behind a prefix. "none" takes a bound away.
func (c *call) amounts(to func() wish, prefix string, names ...string) error {
	for _, name := range names {
		flag := prefix + name
		if !c.given(flag) {
			continue
		}
		field, value, err := amountOf(name, c.text(flag))
		if err != nil {
			return usage("--%s: %v", flag, err)
		}
		to()[field] = value
	}
	return nil
}

// amountOf reads the value of a flag, and says which field of an object it is.
func amountOf(name, text string) (field string, value any, err error) {
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
		return field, number(text), numeric(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return field, nil, fmt.Errorf("%q is not a whole number, or \"none\"", text)
	}
	return field, n, nil
}

// number is a number as it was written, so that nothing is lost on the way.
func number(text string) any { return json.Number(text) }

func numeric(text string) error {
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil {
		return fmt.Errorf("%q is not a number that makes sense here, or \"none\"", text)
	}
	return nil
}

// times takes in --from and --until.
func (c *call) times(w wish) error {
	for _, flag := range []string{"from", "until"} {
		if !c.given(flag) {
			continue
		}
		if c.text(flag) == "none" {
			w[flag] = nil
			continue
		}
		t, err := c.when(c.text(flag))
		if err != nil {
			return usage("--%s: %v", flag, err)
		}
		w[flag] = t.UTC().Format(time.RFC3339)
	}
	return nil
}

// when reads a time: a date, a date and time of day, or how long from now.
func (c *call) when(text string) (time.Time, error) {
	if text == "now" {
		return c.now(), nil
	}
	if d, err := roost.ParseDuration(strings.TrimPrefix(text, "+")); err == nil {
		return c.now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time, as \"2026-03-01 08:00\", nor how long from now, as 2h", text)
}

// names takes in a flag that lists names.
func (c *call) names(w wish, flag, field string) (list []string) {
	if !c.given(flag) {
		return nil
	}
	for _, text := range c.texts(flag) {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if w[field] = list; len(list) == 1 && list[0] == "none" {
		w[field] = nil
		return nil
	}
	return list
}

// switched takes in a flag that is on or off.
func (c *call) switched(w wish, flag, field string) error {
	if !c.given(flag) {
		return nil
	}
	switch c.text(flag) {
	case "on", "yes", "true":
		w[field] = true
	case "off", "no", "false":
		w[field] = false
	default:
		return usage("--%s: %q is neither on nor off", flag, c.text(flag))
	}
	return nil
}

// until is a time for people in a table; what is no terminal gets it in UTC.
func (c *call) until(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !c.out.terminal:
		return t.UTC().Format(time.RFC3339)
	}
	return t.Local().Format("2006-01-02 15:04")
}

// bound is a number of a table that may be missing.
func bound[T any](p *T, text func(T) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}

func plainCores(c ledger.Cores) string { return roost.MilliCPU(c).String() }
func plainCount(n int64) string        { return strconv.FormatInt(n, 10) }

func forceFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "force", Usage: "also for users and nodes that nobody has seen yet"}
}

func timeFlags(what string) []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "from", Usage: "when " + what + " begins, a `TIME`: \"2026-03-01 08:00\", or how long from now, as 2h"},
		&ucli.StringFlag{Name: "until", Usage: "when it ends, a `TIME` likewise"},
	}
}

// objectNames are the names of what is set of a kind.
func (c *call) objectNames(kind ledger.Kind) (map[string]bool, error) {
	var all []entered[any]
	if err := c.shown(string(kind), &all); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, o := range all {
		known[o.Name] = true
	}
	return known, nil
}
