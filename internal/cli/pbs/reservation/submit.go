package reservation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func reservationFlags() []ucli.Flag {
	return []ucli.Flag{
		pbsframe.ShortFlag("D", "DURATION", "how long it is, in seconds or as hh:mm:ss"),
		pbsframe.ShortFlag("E", "TIME", "when it ends, [[[[CC]YY]MM]DD]hhmm[.SS]"),
		pbsframe.ShortFlag("I", "SECONDS", "taken, and does nothing: the answer is there at once"),
		pbsframe.ShortFlag("l", "RESOURCES", "what is kept: select, nodes, ncpus, mem, ngpus, and walltime for -D"),
		pbsframe.ShortFlag("m", "n", "taken, and does nothing: no mail is sent of reservations"),
		pbsframe.ShortFlag("N", "NAME", "what people call it"),
		pbsframe.ShortFlag("R", "TIME", "when it begins, likewise"),
		pbsframe.ShortFlag("U", "USERS", "who may use it beside its owner, as in ann,bob"),
	}
}

// SubmitCommand returns pbs_rsub: make a reservation.
func SubmitCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_rsub", Group: frame.GroupPBS, Summary: "make a reservation",
		Synopsis: "-R TIME -E TIME | -R TIME -D DURATION | -E TIME -D DURATION [-I SECONDS] [-l RESOURCES] [-N NAME] " +
			"[-U USERS]", RawArgs: true, MaxOperands: -1, Run: pbsRsub,
		Description: "Keeps cores, memory and GPUs, or whole machines, for you from a time until another, and prints " +
			"the name of the reservation: qsub -q R12 submits a job that runs in it. It is one of those of roost " +
			"reservation, and who makes one needs the capability for that.",
		Examples: []frame.Example{
			{Line: "pbs_rsub -R 1300 -E 1500 -l select=2:ncpus=8:mem=16gb",
				Description: "16 cores from one o'clock until three"},
			{Line: "pbs_rsub -R 03011300 -D 2:00:00 -l select=1:host=n1+1:host=n2 -U bob",
				Description: "two machines for two hours, for bob, too"},
		},
		Flags: reservationFlags(),
	}
}

// AlterCommand returns pbs_ralter: change a reservation.
func AlterCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_ralter", Group: frame.GroupPBS, Summary: "change a reservation",
		Synopsis: "[-R TIME] [-E TIME] [-D DURATION] [-I SECONDS] [-l RESOURCES] [-N NAME] [-U USERS] RESERVATION",
		RawArgs:  true, MaxOperands: -1, Run: pbsRalter,
		Description: "Changes when a reservation is, what it keeps, and for whom. What is not said stays: with " +
			"-R alone its end, with -E or -D alone its start.",
		Examples: []frame.Example{
			{Line: "pbs_ralter -E 1600 R12", Description: "end it an hour later"},
			{Line: "pbs_ralter -l select=1:ncpus=8 R12", Description: "keep less"},
		},
		Flags: reservationFlags(),
	}
}

// DeleteCommand returns pbs_rdel: delete reservations.
func DeleteCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_rdel", Group: frame.GroupPBS, Summary: "delete reservations", Synopsis: "RESERVATION…",
		RawArgs:     true,
		MaxOperands: -1, Run: pbsRdel,
		Description: "Takes reservations away, and deletes the jobs in them, also those that run: it ends when they " +
			"have ended.",
		Examples: []frame.Example{
			{Line: "pbs_rdel R12", Description: "take it away"},
			{Line: "pbs_rdel R12 R13.n1", Description: "take away two"},
		},
		Flags: []ucli.Flag{},
	}
}

// errNotReserving says of options of OpenPBS why there is nothing that does as they say.
var errNotReserving = map[byte]string{
	'r': "standing reservations: make one for each time",
	'u': "a reservation is of who makes it", 'g': "a reservation is of who makes it",
	'G': "groups of Unix cannot be let in; those of Roost are with: roost reservation set NAME --groups",
	'H': "who may use a reservation may do so from everywhere",
	'M': "no mail is sent of reservations",
	'W': "a job does not become part of a reservation when that is made: submit it with qsub -q once there is one",
}

// reservationOptions reads the command line of pbs_rsub or pbs_ralter.
func reservationOptions(c *frame.Invocation) (pbsframe.Options, error) {
	for _, arg := range c.Args {
		switch arg {
		case "--hosts":
			return pbsframe.Options{}, pbsframe.FailUnsupported(c, arg+
				": machines are taken out of service with: roost drain NODE --from TIME --until TIME")
		case "--job":
			return pbsframe.Options{}, pbsframe.FailUnsupported(c, arg+": what runs has what it has until it ends")
		}
	}
	o, err := pbsframe.ParseOptions(c.Args, "R:E:D:I:l:m:N:U:r:u:g:G:H:M:W:")
	if err != nil {
		return o, pbsframe.PrintUsage(c, err.Error())
	}
	for _, letter := range []byte("rugGHMW") {
		if o.IsSet(letter) {
			return o, pbsframe.FailUnsupported(c, "-"+string(letter)+": "+errNotReserving[letter])
		}
	}
	if o.IsSet('m') && o.Last('m') != "n" {
		return o, pbsframe.FailUnsupported(c, "-m "+document.PrintableText(o.Last('m'))+": "+errNotReserving['M'])
	}
	if o.IsSet('I') && (o.Last('I') == "" || strings.Trim(strings.TrimPrefix(o.Last('I'), "-"), "0123456789") != "") {
		return o, pbsframe.PrintUsage(c, "illegal -I value")
	}
	return o, nil
}

// reservationRequest is what the options say of time and resources.
func reservationRequest(c *frame.Invocation, o *pbsframe.Options) (w qsub.ReservationRequest, err error) {
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return w, err
	}
	return qsub.ParseReservation(o.Last('R'), o.Last('E'), o.Last('D'), o.Given['l'], caller)
}

// reservationFail prints an error in PBS's words.
func reservationFail(c *frame.Invocation, err error) error {
	var refused *qsub.RefusalError
	if !errors.As(err, &refused) && errors.Is(frame.DecodeError(err), roost.NotFound) { // a machine, or a group
		refused = &qsub.RefusalError{Text: withoutForceHint(err), ExitStatus: pbsframe.BadValue}
	}
	if refused == nil {
		return pbsframe.Fail(c, err)
	}
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, strings.TrimPrefix(refused.Text, "qsub: "))
	return frame.ExitError(refused.ExitStatus)
}

func pbsRsub(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := reservationOptions(c)
	if err != nil {
		return err
	}
	if len(o.Operands) > 0 {
		return pbsframe.PrintUsage(c, "")
	}
	server, err := c.ServerName()
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	name, err := newReservation(c, &o)
	if err != nil {
		return reservationFail(c, err)
	}
	fmt.Fprintf(c.Stdout, "%s.%s CONFIRMED\n", name, server)
	return nil
}

// newReservation makes one under the next number that nobody has taken.
func newReservation(c *frame.Invocation, o *pbsframe.Options) (name string, err error) {
	asked, err := reservationRequest(c, o)
	if err != nil {
		return "", err
	}
	from, until, err := asked.Period(time.Time{}, time.Time{}, c.Now())
	if err != nil {
		return "", err
	}
	w := admin.ObjectPatch{}
	if err := describeReservation(c, w, o, []string{frame.LoginName()}); err != nil {
		return "", err
	}
	for {
		all, basis, err := admin.Reservations(c)
		if err != nil {
			return "", err
		}
		last := 0
		for _, r := range all {
			if qsub.ReservationName(r.Name) {
				n, _ := strconv.Atoi(r.Name[1:])
				last = max(last, n)
			}
		}
		name = "R" + strconv.Itoa(last+1)
		if err := checkRoom(c, &asked, name, ledger.Period{From: from, Until: until}, all); err != nil {
			return "", err
		}
		w["name"] = name
		setReservationTimes(w, from, until)
		setReservedResources(w, &asked)
		_, err = c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
			Object: w.JSONText(), Whole: true, Fresh: true, Basis: basis})
		if err == nil || !errors.Is(frame.DecodeError(err), roost.Conflict) {
			return name, err
		}
	}
}

func setReservationTimes(w admin.ObjectPatch, from, until time.Time) {
	w["from"], w["until"] = from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)
}

// setReservedResources sets what to reserve: machines replace an amount, and an amount
// replaces machines.
func setReservedResources(w admin.ObjectPatch, asked *qsub.ReservationRequest) {
	if len(asked.Nodes) > 0 {
		w["nodes"], w["amount"] = asked.Nodes, nil
		return
	}
	amount := admin.ObjectPatch{"cpus": asked.CPUs, "memory_bytes": int64(asked.Memory), "disk_bytes": nil, "gpus": nil}
	if asked.GPUs > 0 {
		amount["gpus"] = asked.GPUs
	}
	w["nodes"], w["amount"] = nil, amount
}

// describeReservation sets the name of a reservation and its users: those that it has
// anyway, and those of -U.
func describeReservation(c *frame.Invocation, w admin.ObjectPatch, o *pbsframe.Options, anyway []string) error {
	if o.IsSet('N') {
		w["reason"] = o.Last('N')
	}
	users := slices.Clone(anyway)
	for _, entry := range strings.Split(o.Last('U'), ",") {
		name, denied := strings.CutPrefix(strings.TrimSpace(entry), "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "+"), "@")
		switch {
		case entry == "" && !o.IsSet('U'):
		case name == "" && !denied:
			return &qsub.RefusalError{Text: "illegal -U value: name the users that may use it", ExitStatus: 2}
		case !denied && !slices.Contains(users, name):
			users = append(users, name)
		}
	}
	if err := admin.RequireKnownUsers(c, users); err != nil {
		return &qsub.RefusalError{Text: withoutForceHint(err), ExitStatus: pbsframe.BadValue}
	}
	w["users"] = users
	return nil
}

// withoutForceHint is an error without the advice to use an option that there is not in
// PBS.
func withoutForceHint(err error) string {
	text, _, _ := strings.Cut(strings.Replace(frame.ErrorText(err), ", and --force sets it nevertheless", "", 1),
		"; --force sets it nevertheless")
	return text
}

// reservation finds the one that an operand names, with or without its server.
func reservation(c *frame.Invocation, text string,
	all []admin.AttributedObject[ledger.AdvanceReservation]) (admin.AttributedObject[ledger.AdvanceReservation], bool) {
	name := strings.TrimSpace(text)
	if i := strings.IndexAny(name, ".@"); i >= 0 {
		name = name[:i]
	}
	i := slices.IndexFunc(all, func(r admin.AttributedObject[ledger.AdvanceReservation]) bool { return r.Name == name })
	if i < 0 {
		fmt.Fprintf(c.Stderr, "%s: Unknown Reservation Id %s\n", c.Command.Name, document.PrintableText(text))
		return admin.AttributedObject[ledger.AdvanceReservation]{}, false
	}
	return all[i], true
}

func pbsRalter(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := reservationOptions(c)
	if err != nil {
		return err
	}
	if len(o.Operands) != 1 || len(o.Given) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	server, err := c.ServerName()
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	for {
		all, basis, err := admin.Reservations(c)
		if err != nil {
			return pbsframe.Fail(c, err)
		}
		old, ok := reservation(c, o.Operands[0], all)
		if !ok {
			return frame.ExitError(pbsframe.UnknownReservation)
		}
		err = changeReservation(c, &o, &old, all, basis)
		if errors.Is(frame.DecodeError(err), roost.Conflict) { // another one has changed meanwhile
			continue
		}
		if err != nil {
			return reservationFail(c, err)
		}
		fmt.Fprintf(c.Stdout, "%s: %s.%s CONFIRMED\n", c.Command.Name, old.Name, server)
		return nil
	}
}

func changeReservation(c *frame.Invocation, o *pbsframe.Options, old *admin.AttributedObject[ledger.AdvanceReservation],
	all []admin.AttributedObject[ledger.AdvanceReservation], basis []byte) error {
	asked, err := reservationRequest(c, o)
	if err != nil {
		return err
	}
	from, until, err := asked.Period(old.Object.From, old.Object.Until, c.Now())
	if err != nil {
		return err
	}
	w := admin.ObjectPatch{"name": old.Name}
	if o.IsSet('U') {
		owner, _, _ := strings.Cut(old.By, "@")
		if !slices.Contains(old.Object.Users, owner) {
			owner = frame.LoginName()
		}
		err = describeReservation(c, w, o, []string{owner})
	} else if o.IsSet('N') {
		w["reason"] = o.Last('N')
	}
	if err != nil {
		return err
	}
	reserved := asked
	if !asked.HasSize {
		reserved = reservedResources(&old.Object)
	}
	if err := checkRoom(c, &reserved, old.Name, ledger.Period{From: from, Until: until}, all); err != nil {
		return err
	}
	setReservationTimes(w, from, until)
	if asked.HasSize {
		setReservedResources(w, &asked)
	}
	_, err = c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
		Object: w.JSONText(), Basis: basis})
	return err
}
