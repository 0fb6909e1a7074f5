package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// SecretCommand returns roost secret: passwords and keys for your tasks.
func SecretCommand() *frame.Command {
	return &frame.Command{
		Name: "secret", Group: frame.GroupChange, Summary: "passwords and keys for your tasks",
		Synopsis: "[list | show NAME | set NAME | rm NAME… | allow NAME NODE… | deny NAME NODE… | rotate-key]",
		Run:      runSecretVerb, MaxOperands: -1,
		Description: "Sets, lists and removes your secrets. set reads the value from a terminal, which does not " +
			"show it, or byte for byte from standard input. No command prints a value. A secret is for jobs that " +
			"are submitted at the node where it was set; allow and deny change that. GROUP/NAME is a secret of a " +
			"group: administrators say with roost admin give USER secrets:GROUP whose jobs may have it, and with " +
			"set-secrets:GROUP who sets it. rotate-key is for administrators: it seals all secrets of the pool with " +
			"a new key.",
		Examples: []frame.Example{
			{Line: "roost secret set db", Description: "asks for the value; the same again gives it a new version"},
			{Line: "roost secret set tls.key <server.key", Description: "the contents of a file"},
			{Line: "roost secret show db", Description: "when it was set and by whom, and which jobs may have it"},
			{Line: "roost secret set physics/db", Description: "for the jobs of all who are in the group physics"},
			{Line: "roost secret allow db n2", Description: "your jobs that you submit at n2 may have it, too"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "json", Usage: "print JSON: with list one document, with show that of the secret"},
		},
	}
}

// secretVerbs lists what can be done with secrets.
func secretVerbs() map[string]func(c *frame.Invocation) error {
	return map[string]func(c *frame.Invocation) error{
		"list": listSecrets, "show": showSecret, "set": setSecret, "rm": removeSecrets, "rotate-key": rotateSecretKey,
		"allow": func(c *frame.Invocation) error { return changeSecretHosts(c, true) },
		"deny":  func(c *frame.Invocation) error { return changeSecretHosts(c, false) },
	}
}

func runSecretVerb(c *frame.Invocation) error {
	verb := "list"
	if len(c.Args) > 0 {
		verb, c.Args = c.Args[0], c.Args[1:]
	}
	run := secretVerbs()[verb]
	if run == nil {
		names := []string{"list", "show", "set", "rm", "allow", "deny", "rotate-key"}
		err := frame.UsageErrorf("there is no %q", verb)
		if n := suggest.Nearest(verb, names); n != "" {
			return frame.WithHint(err, "did you mean: roost secret "+n)
		}
		return frame.WithHint(err, "use one of: "+strings.Join(names, ", "))
	}
	if c.WantsJSON() && verb != "list" && verb != "show" && verb != "rotate-key" {
		return frame.UsageErrorf("--json says nothing to %s", verb)
	}
	return run(c)
}

// secretOperand takes the name of a secret off the operands. Nothing else may be left
// unless more is true.
func secretOperand(c *frame.Invocation, more bool) (string, error) {
	if len(c.Args) == 0 {
		return "", frame.UsageErrorf("NAME is missing")
	}
	if len(c.Args) > 1 && !more {
		return "", frame.UsageErrorf("unexpected operand %q", c.Args[1])
	}
	_, err := roost.ParseSecretName(c.Args[0])
	return c.Args[0], err
}

// readSecrets reads what may be seen of the caller's secrets: of one, or with an empty
// name of all.
func readSecrets(c *frame.Invocation, name string) (all []ledger.SecretInfo, err error) {
	reply, err := c.AskCell(&scheddapi.CellRequest{Verb: "show", Kind: string(ledger.KindSecret), Name: name})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reply.GetDocument(), &all); err != nil {
		return nil, frame.KindErrorf(roost.Internal, "what the negotiator says of secrets cannot be read: %v", err)
	}
	return all, nil
}

func listSecrets(c *frame.Invocation) error {
	if len(c.Args) > 0 {
		return frame.WithHint(frame.UsageErrorf("unexpected operand %q", c.Args[0]), "roost secret show NAME shows one")
	}
	all, err := readSecrets(c, "")
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"secrets": all})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Stderr, "you have no secrets; roost secret set NAME makes one")
		return nil
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NAME", MinWidth: 8},
		{Head: "VERSION", RightAligned: true}, {Head: "BYTES", RightAligned: true}, {Head: "SET"},
		{Head: "BY", MinWidth: 6}, {Head: "FOR JOBS OF", MinWidth: 8}}}
	for _, s := range all {
		at, by := "", ""
		if n := len(s.Versions); n > 0 {
			at, by = secretTime(c, s.Versions[n-1].At), s.Versions[n-1].By
		}
		t.AddRow(frame.TableCell{Text: s.Name}, frame.TableCell{Text: fmt.Sprint(s.Version)},
			frame.TableCell{Text: fmt.Sprint(s.Bytes)}, frame.TableCell{Text: at},
			frame.TableCell{Text: document.PrintableText(by)},
			frame.TableCell{Text: document.PrintableText(secretHolders(s))})
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// secretHolders says whose jobs may have a secret.
func secretHolders(s ledger.SecretInfo) string {
	if s.Group != "" {
		return "group " + s.Group
	}
	return strings.Join(s.Hosts, " ")
}

// secretTime is a time for people; what is no terminal gets it in UTC.
func secretTime(c *frame.Invocation, t time.Time) string {
	if c.OutScreen.Terminal {
		return t.Local().Format("2006-01-02 15:04")
	}
	return t.UTC().Format(time.RFC3339)
}

func showSecret(c *frame.Invocation) error {
	name, err := secretOperand(c, false)
	if err != nil {
		return err
	}
	all, err := readSecrets(c, name)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return frame.KindErrorf(roost.Internal, "the negotiator shows %d secrets of that name", len(all))
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"secret": all[0]})
	}
	s := all[0]
	of, who := s.Owner, "your jobs that are submitted at "+strings.Join(s.Hosts, ", ")
	if s.Group != "" {
		of, who = "group "+s.Group, "the jobs of all with the capability "+roost.SecretUseCapability(s.Group)
	}
	fmt.Fprintf(c.Stdout, "secret %s of %s, version %d, %d bytes\nfor %s\n", s.Name, document.PrintableText(of),
		s.Version, s.Bytes, document.PrintableText(who))
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "VERSION", RightAligned: true},
		{Head: "BYTES", RightAligned: true}, {Head: "SET"}, {Head: "BY", MinWidth: 6}}}
	for _, v := range s.Versions {
		t.AddRow(frame.TableCell{Text: fmt.Sprint(v.Version)}, frame.TableCell{Text: fmt.Sprint(v.Size)},
			frame.TableCell{Text: secretTime(c, v.At)}, frame.TableCell{Text: document.PrintableText(v.By)})
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

func setSecret(c *frame.Invocation) error {
	name, err := secretOperand(c, false)
	if err != nil {
		return err
	}
	text, err := readSecretValue(c, name)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return frame.WithHint(frame.KindErrorf(roost.Invalid, "secret %q: there is no value", name),
			"type it, or send it to standard input; roost secret rm takes a secret away")
	}
	return sendSecretChange(c, ledger.SecretChange{Name: name, Text: text})
}

// readSecretValue reads a value from the terminal, which does not show it, or from
// standard input as it is.
func readSecretValue(c *frame.Invocation, name string) ([]byte, error) {
	f, ok := c.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return frame.ReadLimited(c.Stdin, "standard input", roost.MaxSecretBytes)
	}
	fmt.Fprintf(c.Stderr, "value of %s (it is not shown): ", name)
	text, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.Stderr)
	return text, err
}

func sendSecretChange(c *frame.Invocation, change ledger.SecretChange) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindSecret),
		Object: text})
	return err
}

func removeSecrets(c *frame.Invocation) error {
	if _, err := secretOperand(c, true); err != nil {
		return err
	}
	for _, name := range c.Args {
		if _, err := c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbRemove), Kind: string(ledger.KindSecret),
			Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func changeSecretHosts(c *frame.Invocation, allow bool) error {
	name, err := secretOperand(c, true)
	if err != nil {
		return err
	}
	if len(c.Args) < 2 {
		return frame.UsageErrorf("NODE is missing")
	}
	change := ledger.SecretChange{Name: name}
	if allow {
		change.Allow = c.Args[1:]
	} else {
		change.Deny = c.Args[1:]
	}
	return sendSecretChange(c, change)
}

func rotateSecretKey(c *frame.Invocation) error {
	if len(c.Args) > 0 {
		return frame.UsageErrorf("unexpected operand %q", c.Args[0])
	}
	reply, err := c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbReset), Kind: string(ledger.KindSecret)})
	if err != nil {
		return err
	}
	var done struct {
		Sealed int      `json:"sealed"`
		Lost   []string `json:"lost"`
	}
	if err := json.Unmarshal(reply.GetDocument(), &done); err != nil {
		return frame.KindErrorf(roost.Internal, "what the negotiator says cannot be read: %v", err)
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"sealed": done.Sealed, "lost": done.Lost})
	}
	fmt.Fprintf(c.Stderr, "%d secrets are sealed with the new key\n", done.Sealed)
	for _, name := range done.Lost {
		fmt.Fprintf(c.Stderr, "%s: its key is lost; its owner sets it again with roost secret set\n",
			document.PrintableText(name))
	}
	return nil
}
