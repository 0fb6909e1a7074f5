package admin

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// The commands of administrators have words in common: without one they show, "set" makes
// or changes, "rm" takes away.

// administer chooses what to do by the first operand; without one it shows. Flags say
// what is to be set, but for those of naming, which say of what.
func administer(show func(c *frame.Invocation) error, verbs map[string]func(c *frame.Invocation) error,
	naming ...string) func(c *frame.Invocation) error {
	return func(c *frame.Invocation) error {
		if len(c.Args) == 0 || c.Args[0] == "show" {
			if len(c.Args) > 1 {
				return frame.UsageErrorf("unexpected operand %q", c.Args[1])
			}
			if err := refuseFlags(c, "show"); err != nil {
				return err
			}
			return show(c)
		}
		verb := c.Args[0]
		do := verbs[verb]
		if do == nil {
			names := []string{"show"}
			for name := range verbs {
				names = append(names, name)
			}
			slices.Sort(names)
			err := frame.UsageErrorf("there is no %q", verb)
			if n := suggest.Nearest(verb, names); n != "" {
				return frame.WithHint(err, fmt.Sprintf("did you mean: roost %s %s", c.Command.Name, n))
			}
			return frame.WithHint(err, "use one of: "+strings.Join(names, ", "))
		}
		if c.Args = c.Args[1:]; verb != "set" && verb != "give" {
			if err := refuseFlags(c, verb, naming...); err != nil {
				return err
			}
		}
		return do(c)
	}
}

// refuseFlags refuses flags that a verb does not use. "rm ann --cpus 3" does not mean
// that the whole quota goes.
func refuseFlags(c *frame.Invocation, verb string, looked ...string) error {
	looked = append([]string{"json"}, looked...)
	for _, f := range frame.CommonFlags() {
		looked = append(looked, f.Names()[0])
	}
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsFlagSet(name) && !slices.Contains(looked, name) {
			return frame.UsageErrorf("--%s says nothing to %s", name, verb)
		}
	}
	return nil
}

// requireOperands refuses a command line that does not have one operand for each wanted
// name. A last name that ends in "…" stands for one or more.
func requireOperands(c *frame.Invocation, wanted ...string) error {
	n, most := len(wanted), len(wanted)
	if n > 0 && strings.HasSuffix(wanted[n-1], "…") {
		most = len(c.Args)
	}
	if len(c.Args) < n {
		return frame.UsageErrorf("%s is missing", strings.TrimSuffix(wanted[len(c.Args)], "…"))
	}
	if len(c.Args) > most {
		return frame.UsageErrorf("unexpected operand %q", c.Args[most])
	}
	return nil
}

// CellObjects reads all objects of a kind from the cell.
func CellObjects(c *frame.Invocation, kind string, into any) error {
	_, err := cellObjectsDigest(c, kind, into)
	return err
}

// cellObjectsDigest is shown with the digest of what there is of the kind.
func cellObjectsDigest(c *frame.Invocation, kind string, into any) (digest []byte, err error) {
	reply, err := c.AskCell(&scheddapi.CellRequest{Verb: "show", Kind: kind})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reply.GetDocument(), into); err != nil {
		return nil, frame.KindErrorf(roost.Internal, "what the negotiator says of %s cannot be read: %v", kind, err)
	}
	return reply.GetDigest(), nil
}

// AttributedObject is an object of type T with who has set it.
type AttributedObject[T any] struct {
	Name   string    `json:"name"`
	Object T         `json:"object"`
	By     string    `json:"set_by"`
	At     time.Time `json:"set_at"`
	Made   time.Time `json:"made_at"` // zero from a negotiator that does not say it
}

// showObjects prints the objects of one kind, as JSON under that name, or as a table.
func showObjects[T any](c *frame.Invocation, kind ledger.ObjectKind, name, none string, t *frame.TextTable,
	row func(o AttributedObject[T]) []frame.TableCell) error {
	var raw []json.RawMessage
	var all []AttributedObject[T]
	reply, err := c.AskCell(&scheddapi.CellRequest{Verb: "show", Kind: string(kind)})
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &raw)
	}
	if err == nil {
		err = json.Unmarshal(reply.GetDocument(), &all)
	}
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{name: raw})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Stderr, none)
		return nil
	}
	t.Columns = append(t.Columns, frame.TableColumn{Head: "SET BY", MinWidth: 6, DropPriority: 9})
	for _, o := range all {
		t.AddRow(append(row(o), frame.TableCell{Text: document.PrintableText(o.By), Colour: frame.Dim})...)
	}
	t.DropEmptyColumns("SET BY")
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// ObjectPatch holds the fields of an object to change; nil removes a field.
type ObjectPatch map[string]any

// PatchObject has the cell make or change an object. Users in it that this host does not
// know must have used the pool, unless --force is said.
func PatchObject(c *frame.Invocation, kind ledger.ObjectKind, w ObjectPatch, users ...string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	force := c.Flags.IsSet("force") && c.Flag("force")
	if !force {
		if err := RequireKnownUsers(c, users); err != nil {
			return err
		}
	}
	_, err = c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(kind), Object: text,
		Strange: force})
	return err
}

// putObject has an object made; nothing is left of one that was there.
func putObject(c *frame.Invocation, kind ledger.ObjectKind, w ObjectPatch) error {
	_, err := c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(kind), Object: w.JSONText(),
		Whole: true, Strange: c.Flag("force")})
	return err
}

// RequireKnownUsers refuses users whom neither this host knows nor the pool has seen
// before.
func RequireKnownUsers(c *frame.Invocation, users []string) error {
	if users = slices.DeleteFunc(slices.Clone(users), func(u string) bool { return !unknownUser(u) }); len(users) == 0 {
		return nil
	}
	var s ledger.ShareReport
	if err := CellObjects(c, "shares", &s); err != nil {
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
		err := frame.KindErrorf(roost.Invalid,
			"there is no user %q on this node, and none of that name has ever used the "+
				"pool; --force sets it nevertheless", u)
		if n := suggest.Nearest(u, append(names, localUsers()...)); n != "" {
			return frame.WithHint(err, fmt.Sprintf("did you mean %q?", n))
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

// RemoveObject has the cell remove the object of a kind and a name.
func RemoveObject(c *frame.Invocation, verb ledger.CommandVerb, kind ledger.ObjectKind, name string) error {
	_, err := c.AskCell(&scheddapi.CellRequest{Verb: string(verb), Kind: string(kind), Name: name})
	return err
}

// unknownUser reports whether this host does not know a user.
func unknownUser(name string) bool {
	_, err := account.UserNamed(name)
	return err != nil
}

// JSONText is the patch as JSON. Every value in it has a form in JSON, because numbers
// were checked before.
func (w ObjectPatch) JSONText() []byte {
	text, _ := json.Marshal(w)
	return text
}

// parseSubmitter takes a name such as sci.chem.ann apart at the longest group that is
// known.
func parseSubmitter(c *frame.Invocation, name string) (fairshare.Submitter, error) {
	groups, err := objectNames(c, ledger.KindGroup)
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

// SubPatch is the part of a patch with that name, made if it does not exist.
func (w ObjectPatch) SubPatch(name string) ObjectPatch {
	inner, ok := w[name].(ObjectPatch)
	if !ok {
		inner = ObjectPatch{}
		w[name] = inner
	}
	return inner
}

// amountFlags takes in the flags for a vector: --cpus, --memory and so on, behind a
// prefix. "none" takes a bound away.
func amountFlags(c *frame.Invocation, to func() ObjectPatch, prefix string, names ...string) error {
	for _, name := range names {
		flag := prefix + name
		if !c.IsFlagSet(flag) {
			continue
		}
		field, value, err := ParseAmount(name, c.StringFlag(flag))
		if err != nil {
			return frame.UsageErrorf("--%s: %v", flag, err)
		}
		to()[field] = value
	}
	return nil
}

// ParseAmount reads the value of a flag about a resource, and returns the object's field
// for it.
func ParseAmount(name, text string) (field string, value any, err error) {
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
		return field, JSONNumber(text), CheckNumber(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return field, nil, fmt.Errorf("%q is not a whole number, or \"none\"", text)
	}
	return field, n, nil
}

// JSONNumber is a number as the user wrote it, so that JSON has the same digits.
func JSONNumber(text string) any { return json.Number(text) }

// CheckNumber returns an error unless a text is a number in JSON.
func CheckNumber(text string) error {
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil {
		return fmt.Errorf("%q is not a number that makes sense here, or \"none\"", text)
	}
	return nil
}

// timeRangeFlags takes in --from and --until.
func timeRangeFlags(c *frame.Invocation, w ObjectPatch) error {
	return timeFlagsTo(c, w, "from", "until")
}

// timeFlagsTo takes in flags that are times.
func timeFlagsTo(c *frame.Invocation, w ObjectPatch, flags ...string) error {
	for _, flag := range flags {
		if !c.IsFlagSet(flag) {
			continue
		}
		if c.StringFlag(flag) == "none" {
			w[flag] = nil
			continue
		}
		t, err := parseWhen(c, c.StringFlag(flag))
		if err != nil {
			return frame.UsageErrorf("--%s: %v", flag, err)
		}
		w[flag] = t.UTC().Format(time.RFC3339)
	}
	return nil
}

// parseWhen reads a time: a date, a date and time of day, or how long from now.
func parseWhen(c *frame.Invocation, text string) (time.Time, error) {
	if text == "now" {
		return c.Now(), nil
	}
	if d, err := roost.ParseDuration(strings.TrimPrefix(text, "+")); err == nil {
		return c.Now().Add(d), nil
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
func nameListFlag(c *frame.Invocation, w ObjectPatch, flag, field string) (list []string) {
	if !c.IsFlagSet(flag) {
		return nil
	}
	for _, text := range c.StringsFlag(flag) {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if w[field] = list; len(list) == 1 && list[0] == "none" {
		w[field] = nil
		return nil
	}
	return list
}

// onOffFlag takes in a flag that is on or off.
func onOffFlag(c *frame.Invocation, w ObjectPatch, flag, field string) error {
	if !c.IsFlagSet(flag) {
		return nil
	}
	switch c.StringFlag(flag) {
	case "on", "yes", "true":
		w[field] = true
	case "off", "no", "false":
		w[field] = false
	default:
		return frame.UsageErrorf("--%s: %q is neither on nor off", flag, c.StringFlag(flag))
	}
	return nil
}

// UntilText is a time for people in a table; what is no terminal gets it in UTC.
func UntilText(c *frame.Invocation, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !c.OutScreen.Terminal:
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
func objectNames(c *frame.Invocation, kind ledger.ObjectKind) (map[string]bool, error) {
	var all []AttributedObject[any]
	if err := CellObjects(c, string(kind), &all); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, o := range all {
		known[o.Name] = true
	}
	return known, nil
}
