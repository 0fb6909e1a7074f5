package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func reservationFlags() []ucli.Flag {
	return []ucli.Flag{
		shortFlag("D", "DURATION", "how long it is, in seconds or as hh:mm:ss"),
		shortFlag("E", "TIME", "when it ends, [[[[CC]YY]MM]DD]hhmm[.SS]"),
		shortFlag("I", "SECONDS", "taken, and does nothing: the answer is there at once"),
		shortFlag("l", "RESOURCES", "what is kept: select, nodes, ncpus, mem, ngpus, and walltime for -D"),
		shortFlag("m", "n", "taken, and does nothing: no mail is sent of reservations"),
		shortFlag("N", "NAME", "what people call it"),
		shortFlag("R", "TIME", "when it begins, likewise"),
		shortFlag("U", "USERS", "who may use it beside its owner, as in ann,bob"),
	}
}

func pbsRsubCommand() *command {
	return &command{
		name: "pbs_rsub", group: groupPBS, summary: "make a reservation",
		synopsis: "-R TIME -E TIME | -R TIME -D DURATION | -E TIME -D DURATION [-I SECONDS] [-l RESOURCES] [-N NAME] " +
			"[-U USERS]", rawArgs: true, maxOperands: -1, run: pbsRsub,
		description: "Keeps cores, memory and GPUs, or whole machines, for you from a time until another, and prints " +
			"the name of the reservation: qsub -q R12 submits a job that runs in it. It is one of those of roost " +
			"reservation, and who makes one needs the capability for that.",
		examples: []commandExample{
			{"pbs_rsub -R 1300 -E 1500 -l select=2:ncpus=8:mem=16gb", "16 cores from one o'clock until three"},
			{"pbs_rsub -R 03011300 -D 2:00:00 -l select=1:host=n1+1:host=n2 -U bob",
				"two machines for two hours, for bob, too"},
		},
		flags: reservationFlags(),
	}
}

func pbsRalterCommand() *command {
	return &command{
		name: "pbs_ralter", group: groupPBS, summary: "change a reservation",
		synopsis: "[-R TIME] [-E TIME] [-D DURATION] [-I SECONDS] [-l RESOURCES] [-N NAME] [-U USERS] RESERVATION",
		rawArgs:  true, maxOperands: -1, run: pbsRalter,
		description: "Changes when a reservation is, what it keeps, and for whom. What is not said stays: with " +
			"-R alone its end, with -E or -D alone its start.",
		examples: []commandExample{
			{"pbs_ralter -E 1600 R12", "end it an hour later"},
			{"pbs_ralter -l select=1:ncpus=8 R12", "keep less"},
		},
		flags: reservationFlags(),
	}
}

func pbsRdelCommand() *command {
	return &command{
		name: "pbs_rdel", group: groupPBS, summary: "delete reservations", synopsis: "RESERVATION…", rawArgs: true,
		maxOperands: -1, run: pbsRdel,
		description: "Takes reservations away, and deletes the jobs in them, also those that run: it ends when they " +
			"have ended.",
		examples: []commandExample{
			{"pbs_rdel R12", "take it away"},
			{"pbs_rdel R12 R13.n1", "take away two"},
		},
		flags: []ucli.Flag{},
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
func (c *invocation) reservationOptions() (pbsOptions, error) {
	for _, arg := range c.args {
		switch arg {
		case "--hosts":
			return pbsOptions{}, c.unsupported(arg +
				": machines are taken out of service with: roost drain NODE --from TIME --until TIME")
		case "--job":
			return pbsOptions{}, c.unsupported(arg + ": what runs has what it has until it ends")
		}
	}
	o, err := getopt(c.args, "R:E:D:I:l:m:N:U:r:u:g:G:H:M:W:")
	if err != nil {
		return o, c.pbsUsage(err.Error())
	}
	for _, letter := range []byte("rugGHMW") {
		if o.isSet(letter) {
			return o, c.unsupported("-" + string(letter) + ": " + errNotReserving[letter])
		}
	}
	if o.isSet('m') && o.last('m') != "n" {
		return o, c.unsupported("-m " + printableText(o.last('m')) + ": " + errNotReserving['M'])
	}
	if o.isSet('I') && (o.last('I') == "" || strings.Trim(strings.TrimPrefix(o.last('I'), "-"), "0123456789") != "") {
		return o, c.pbsUsage("illegal -I value")
	}
	return o, nil
}

func (c *invocation) unsupported(why string) error {
	fmt.Fprintf(c.stderr, "%s: No support for requested service: %s\n", c.cmd.name, why)
	return exitError(pbsNoSupport)
}

// reservationRequest is what the options say of time and resources.
func (c *invocation) reservationRequest(o *pbsOptions) (w qsub.ReservationRequest, err error) {
	caller, err := c.pbsCaller()
	if err != nil {
		return w, err
	}
	return qsub.ParseReservation(o.last('R'), o.last('E'), o.last('D'), o.given['l'], caller)
}

// reservationFail prints an error in PBS's words.
func (c *invocation) reservationFail(err error) error {
	var refused *qsub.RefusalError
	if !errors.As(err, &refused) && errors.Is(decodeError(err), roost.NotFound) { // a machine, or a group
		refused = &qsub.RefusalError{Text: withoutForceHint(err), ExitStatus: pbsBadValue}
	}
	if refused == nil {
		return c.pbsFail(err)
	}
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.TrimPrefix(refused.Text, "qsub: "))
	return exitError(refused.ExitStatus)
}

func pbsRsub(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := c.reservationOptions()
	if err != nil {
		return err
	}
	if len(o.operands) > 0 {
		return c.pbsUsage("")
	}
	server, err := c.serverName()
	if err != nil {
		return c.pbsFail(err)
	}
	name, err := c.newReservation(&o)
	if err != nil {
		return c.reservationFail(err)
	}
	fmt.Fprintf(c.stdout, "%s.%s CONFIRMED\n", name, server)
	return nil
}

// newReservation makes one under the next number that nobody has taken.
func (c *invocation) newReservation(o *pbsOptions) (name string, err error) {
	asked, err := c.reservationRequest(o)
	if err != nil {
		return "", err
	}
	from, until, err := asked.Period(time.Time{}, time.Time{}, c.now())
	if err != nil {
		return "", err
	}
	w := objectPatch{}
	if err := c.describeReservation(w, o, []string{loginName()}); err != nil {
		return "", err
	}
	for {
		all, basis, err := c.reservations()
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
		if err := c.checkRoom(&asked, name, ledger.Period{From: from, Until: until}, all); err != nil {
			return "", err
		}
		w["name"] = name
		setReservationTimes(w, from, until)
		setReservedResources(w, &asked)
		_, err = c.askCell(&wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
			Object: w.jsonText(), Whole: true, Fresh: true, Basis: basis})
		if err == nil || !errors.Is(decodeError(err), roost.Conflict) {
			return name, err
		}
	}
}

func setReservationTimes(w objectPatch, from, until time.Time) {
	w["from"], w["until"] = from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)
}

// setReservedResources says in an object what is to be kept: machines take the place of
// an amount, and an amount theirs.
func setReservedResources(w objectPatch, asked *qsub.ReservationRequest) {
	if len(asked.Nodes) > 0 {
		w["nodes"], w["amount"] = asked.Nodes, nil
		return
	}
	amount := objectPatch{"cpus": asked.CPUs, "memory_bytes": int64(asked.Memory), "disk_bytes": nil, "gpus": nil}
	if asked.GPUs > 0 {
		amount["gpus"] = asked.GPUs
	}
	w["nodes"], w["amount"] = nil, amount
}

// describeReservation says in an object what it is called, and for whom it is: for those
// anyway, and those of -U.
func (c *invocation) describeReservation(w objectPatch, o *pbsOptions, anyway []string) error {
	if o.isSet('N') {
		w["reason"] = o.last('N')
	}
	users := slices.Clone(anyway)
	for _, entry := range strings.Split(o.last('U'), ",") {
		name, denied := strings.CutPrefix(strings.TrimSpace(entry), "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "+"), "@")
		switch {
		case entry == "" && !o.isSet('U'):
		case name == "" && !denied:
			return &qsub.RefusalError{Text: "illegal -U value: name the users that may use it", ExitStatus: 2}
		case !denied && !slices.Contains(users, name):
			users = append(users, name)
		}
	}
	if err := c.requireKnownUsers(users); err != nil {
		return &qsub.RefusalError{Text: withoutForceHint(err), ExitStatus: pbsBadValue}
	}
	w["users"] = users
	return nil
}

// withoutForceHint is an error without the advice to use an option that there is not in
// PBS.
func withoutForceHint(err error) string {
	text, _, _ := strings.Cut(strings.Replace(errorText(err), ", and --force sets it nevertheless", "", 1),
		"; --force sets it nevertheless")
	return text
}

// reservation finds the one that an operand names, with or without its server.
func (c *invocation) reservation(text string,
	all []attributedObject[ledger.AdvanceReservation]) (attributedObject[ledger.AdvanceReservation], bool) {
	name := strings.TrimSpace(text)
	if i := strings.IndexAny(name, ".@"); i >= 0 {
		name = name[:i]
	}
	i := slices.IndexFunc(all, func(r attributedObject[ledger.AdvanceReservation]) bool { return r.Name == name })
	if i < 0 {
		fmt.Fprintf(c.stderr, "%s: Unknown Reservation Id %s\n", c.cmd.name, printableText(text))
		return attributedObject[ledger.AdvanceReservation]{}, false
	}
	return all[i], true
}

func pbsRalter(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := c.reservationOptions()
	if err != nil {
		return err
	}
	if len(o.operands) != 1 || len(o.given) == 0 {
		return c.pbsUsage("")
	}
	server, err := c.serverName()
	if err != nil {
		return c.pbsFail(err)
	}
	for {
		all, basis, err := c.reservations()
		if err != nil {
			return c.pbsFail(err)
		}
		old, ok := c.reservation(o.operands[0], all)
		if !ok {
			return exitError(pbsUnknownReservation)
		}
		err = c.changeReservation(&o, &old, all, basis)
		if errors.Is(decodeError(err), roost.Conflict) { // another one has changed meanwhile
			continue
		}
		if err != nil {
			return c.reservationFail(err)
		}
		fmt.Fprintf(c.stdout, "%s: %s.%s CONFIRMED\n", c.cmd.name, old.Name, server)
		return nil
	}
}

func (c *invocation) changeReservation(o *pbsOptions, old *attributedObject[ledger.AdvanceReservation],
	all []attributedObject[ledger.AdvanceReservation], basis []byte) error {
	asked, err := c.reservationRequest(o)
	if err != nil {
		return err
	}
	from, until, err := asked.Period(old.Object.From, old.Object.Until, c.now())
	if err != nil {
		return err
	}
	w := objectPatch{"name": old.Name}
	if o.isSet('U') {
		owner, _, _ := strings.Cut(old.By, "@")
		if !slices.Contains(old.Object.Users, owner) {
			owner = loginName()
		}
		err = c.describeReservation(w, o, []string{owner})
	} else if o.isSet('N') {
		w["reason"] = o.last('N')
	}
	if err != nil {
		return err
	}
	reserved := asked
	if !asked.HasSize {
		reserved = reservedResources(&old.Object)
	}
	if err := c.checkRoom(&reserved, old.Name, ledger.Period{From: from, Until: until}, all); err != nil {
		return err
	}
	setReservationTimes(w, from, until)
	if asked.HasSize {
		setReservedResources(w, &asked)
	}
	_, err = c.askCell(&wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
		Object: w.jsonText(), Basis: basis})
	return err
}
