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
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func reservationFlags() []ucli.Flag {
	return []ucli.Flag{
		short("D", "DURATION", "how long it is, in seconds or as hh:mm:ss"),
		short("E", "TIME", "when it ends, [[[[CC]YY]MM]DD]hhmm[.SS]"),
		short("I", "SECONDS", "taken, and does nothing: the answer is there at once"),
		short("l", "RESOURCES", "what is kept: select, nodes, ncpus, mem, ngpus, and walltime for -D"),
		short("m", "n", "taken, and does nothing: no mail is sent of reservations"),
		short("N", "NAME", "what people call it"),
		short("R", "TIME", "when it begins, likewise"),
		short("U", "USERS", "who may use it beside its owner, as in ann,bob"),
	}
}

func pbsRsubCommand() *command {
	return &command{
		name: "pbs_rsub", group: groupPBS, brief: "make a reservation", args: "-R TIME -E TIME | -R TIME -D DURATION | -E TIME -D DURATION [-I SECONDS] [-l RESOURCES] [-N NAME] [-U USERS]", raw: true, most: -1, do: pbsRsub,
		about: "Keeps cores, memory and GPUs, or whole machines, for you from a time until another, and prints the name of the reservation: qsub -q R12 submits a job that runs in it. It is one of those of roost reservation, and who makes one needs the capability for that.",
		examples: []example{
			{"pbs_rsub -R 1300 -E 1500 -l select=2:ncpus=8:mem=16gb", "16 cores from one o'clock until three"},
			{"pbs_rsub -R 03011300 -D 2:00:00 -l select=1:host=n1+1:host=n2 -U bob", "two machines for two hours, for bob, too"},
		},
		flags: reservationFlags(),
	}
}

func pbsRalterCommand() *command {
	return &command{
		name: "pbs_ralter", group: groupPBS, brief: "change a reservation", args: "[-R TIME] [-E TIME] [-D DURATION] [-I SECONDS] [-l RESOURCES] [-N NAME] [-U USERS] RESERVATION", raw: true, most: -1, do: pbsRalter,
		about: "Changes when a reservation is, what it keeps, and for whom. What is not said stays: with -R alone its end, with -E or -D alone its start.",
		examples: []example{
			{"pbs_ralter -E 1600 R12", "end it an hour later"},
			{"pbs_ralter -l select=1:ncpus=8 R12", "keep less"},
		},
		flags: reservationFlags(),
	}
}

func pbsRdelCommand() *command {
	return &command{
		name: "pbs_rdel", group: groupPBS, brief: "delete reservations", args: "RESERVATION…", raw: true, most: -1, do: pbsRdel,
		about: "Takes reservations away, and deletes the jobs in them, also those that run: it ends when they have ended.",
		examples: []example{
			{"pbs_rdel R12", "take it away"},
			{"pbs_rdel R12 R13.n1", "take away two"},
		},
		flags: []ucli.Flag{},
	}
}

// notReserving says of options of OpenPBS why there is nothing that does as they say.
var notReserving = map[byte]string{
	'r': "standing reservations: make one for each time",
	'u': "a reservation is of who makes it", 'g': "a reservation is of who makes it",
	'G': "groups of Unix cannot be let in; those of Roost are with: roost reservation set NAME --groups",
	'H': "who may use a reservation may do so from everywhere",
	'M': "no mail is sent of reservations",
	'W': "a job does not become part of a reservation when that is made: submit it with qsub -q once there is one",
}

// reservationOptions reads the command line of pbs_rsub or pbs_ralter.
func (c *call) reservationOptions() (options, error) {
	for _, arg := range c.args {
		switch arg {
		case "--hosts":
			return options{}, c.unsupported(arg + ": machines are taken out of service with: roost drain NODE --from TIME --until TIME")
		case "--job":
			return options{}, c.unsupported(arg + ": what runs has what it has until it ends")
		}
	}
	o, err := getopt(c.args, "R:E:D:I:l:m:N:U:r:u:g:G:H:M:W:")
	if err != nil {
		return o, c.pbsUsage(err.Error())
	}
	for _, letter := range []byte("rugGHMW") {
		if o.has(letter) {
			return o, c.unsupported("-" + string(letter) + ": " + notReserving[letter])
		}
	}
	if o.has('m') && o.last('m') != "n" {
		return o, c.unsupported("-m " + printable(o.last('m')) + ": " + notReserving['M'])
	}
	if o.has('I') && (o.last('I') == "" || strings.Trim(strings.TrimPrefix(o.last('I'), "-"), "0123456789") != "") {
		return o, c.pbsUsage("illegal -I value")
	}
	return o, nil
}

func (c *call) unsupported(why string) error {
	fmt.Fprintf(c.stderr, "%s: No support for requested service: %s\n", c.cmd.name, why)
	return exit(pbsNoSupport)
}

// reservationWish is what the options say of time and resources.
func (c *call) reservationWish(o *options) (w pbs.ReservationWish, err error) {
	caller, err := c.pbsCaller()
	if err != nil {
		return w, err
	}
	return pbs.ParseReservation(o.last('R'), o.last('E'), o.last('D'), o.given['l'], caller)
}

// reservationFail prints an error in PBS's words.
func (c *call) reservationFail(err error) error {
	var refused *pbs.Error
	if !errors.As(err, &refused) && errors.Is(fromWire(err), roost.NotFound) { // a machine, or a group
		refused = &pbs.Error{Text: unforced(err), Code: pbsBadValue}
	}
	if refused == nil {
		return c.pbsFail(err)
	}
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.TrimPrefix(refused.Text, "qsub: "))
	return exit(refused.Code)
}

func pbsRsub(c *call) error {
	if c.asksVersion() {
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
func (c *call) newReservation(o *options) (name string, err error) {
	asked, err := c.reservationWish(o)
	if err != nil {
		return "", err
	}
	from, until, err := asked.Period(time.Time{}, time.Time{}, c.now())
	if err != nil {
		return "", err
	}
	w := wish{}
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
			if pbs.ReservationName(r.Name) {
				n, _ := strconv.Atoi(r.Name[1:])
				last = max(last, n)
			}
		}
		name = "R" + strconv.Itoa(last+1)
		if err := c.room(&asked, name, ledger.Period{From: from, Until: until}, all); err != nil {
			return "", err
		}
		w["name"] = name
		keepTimes(w, from, until)
		keepWish(w, &asked)
		_, err = c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(ledger.KindReservation), Object: w.text(), Whole: true, Fresh: true, Basis: basis})
		if err == nil || !errors.Is(fromWire(err), roost.Conflict) {
			return name, err
		}
	}
}

func keepTimes(w wish, from, until time.Time) {
	w["from"], w["until"] = from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)
}

// keepWish says in an object what is to be kept: machines take the place of an amount, and an amount theirs.
func keepWish(w wish, asked *pbs.ReservationWish) {
	if len(asked.Nodes) > 0 {
		w["nodes"], w["amount"] = asked.Nodes, nil
		return
	}
	amount := wish{"cpus": asked.CPUs, "memory_bytes": int64(asked.Memory), "disk_bytes": nil, "gpus": nil}
	if asked.GPUs > 0 {
		amount["gpus"] = asked.GPUs
	}
	w["nodes"], w["amount"] = nil, amount
}

// describeReservation says in an object what it is called, and for whom it is: for those anyway, and those of -U.
func (c *call) describeReservation(w wish, o *options, anyway []string) error {
	if o.has('N') {
		w["reason"] = o.last('N')
	}
	users := slices.Clone(anyway)
	for _, entry := range strings.Split(o.last('U'), ",") {
		name, denied := strings.CutPrefix(strings.TrimSpace(entry), "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "+"), "@")
		switch {
		case entry == "" && !o.has('U'):
		case name == "" && !denied:
			return &pbs.Error{Text: "illegal -U value: name the users that may use it", Code: 2}
		case !denied && !slices.Contains(users, name):
			users = append(users, name)
		}
	}
	if err := c.known(users); err != nil {
		return &pbs.Error{Text: unforced(err), Code: pbsBadValue}
	}
	w["users"] = users
	return nil
}

// unforced is an error without the advice to use an option that there is not in PBS.
func unforced(err error) string {
	text, _, _ := strings.Cut(strings.Replace(message(err), ", and --force sets it nevertheless", "", 1), "; --force sets it nevertheless")
	return text
}

// reservation finds the one that an operand names, with or without its server.
func (c *call) reservation(text string, all []entered[ledger.Reservation]) (entered[ledger.Reservation], bool) {
	name := strings.TrimSpace(text)
	if i := strings.IndexAny(name, ".@"); i >= 0 {
		name = name[:i]
	}
	i := slices.IndexFunc(all, func(r entered[ledger.Reservation]) bool { return r.Name == name })
	if i < 0 {
		fmt.Fprintf(c.stderr, "%s: Unknown Reservation Id %s\n", c.cmd.name, printable(text))
		return entered[ledger.Reservation]{}, false
	}
	return all[i], true
}

func pbsRalter(c *call) error {
	if c.asksVersion() {
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
			return exit(pbsUnknownReservation)
		}
		err = c.changeReservation(&o, &old, all, basis)
		if errors.Is(fromWire(err), roost.Conflict) { // another one has changed meanwhile
			continue
		}
		if err != nil {
			return c.reservationFail(err)
		}
		fmt.Fprintf(c.stdout, "%s: %s.%s CONFIRMED\n", c.cmd.name, old.Name, server)
		return nil
	}
}

func (c *call) changeReservation(o *options, old *entered[ledger.Reservation], all []entered[ledger.Reservation], basis []byte) error {
	asked, err := c.reservationWish(o)
	if err != nil {
		return err
	}
	from, until, err := asked.Period(old.Object.From, old.Object.Until, c.now())
	if err != nil {
		return err
	}
	w := wish{"name": old.Name}
	if o.has('U') {
		owner, _, _ := strings.Cut(old.By, "@")
		if !slices.Contains(old.Object.Users, owner) {
			owner = loginName()
		}
		err = c.describeReservation(w, o, []string{owner})
	} else if o.has('N') {
		w["reason"] = o.last('N')
	}
	if err != nil {
		return err
	}
	kept := asked
	if !asked.Sized {
		kept = keptBy(&old.Object)
	}
	if err := c.room(&kept, old.Name, ledger.Period{From: from, Until: until}, all); err != nil {
		return err
	}
	keepTimes(w, from, until)
	if asked.Sized {
		keepWish(w, &asked)
	}
	_, err = c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(ledger.KindReservation), Object: w.text(), Basis: basis})
	return err
}
