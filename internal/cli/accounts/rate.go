package accounts

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// RateCommand returns roost rate: what an hour of resources costs.
func RateCommand() *frame.Command {
	return &frame.Command{
		Name: "rate", Group: frame.GroupAdmin, Summary: "show and set what an hour of resources costs",
		Synopsis: "[list | set | recharge]", MaxOperands: -1, Run: runBranch(rateBranches), Branches: rateBranches,
		Description: "Lists the rates, or adds one. A rate holds from a time on, until the next of the same group " +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"" +
			"begins, for the pool or for a group with those below it. The rule dominant charges the greatest " +
			"share that a task has of the machine of the rate, in its cores; sum and max go by the prices of an hour " +
			"of a core, a GiB and a GPU. Rates are never changed or removed: add a later one. What ran since is " +
			"charged again by recharge.",
		Examples: []frame.Example{
			{Line: "roost rate", Description: "all rates"},
			{Line: "roost rate set --rule dominant --machine 64:256GiB:4 --core-hour 0.02 --from 2026-01-01",
				Description: "a task pays for its greatest share of such a machine"},
			{Line: "roost rate set --group physics --rule sum --core-hour 0.01 --gpu-hour 0.5 --band free=0",
				Description: "a rate of a group; its free jobs cost nothing"},
			{Line: "roost rate recharge --from 2026-01-01", Description: "what ended since then is charged again"},
		},
		Flags: rateFlags(),
	}
}

func rateFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "group", Usage: "for this `GROUP` and those below it, in place of the pool"},
		&ucli.StringFlag{Name: "from", Usage: "from when on: a date as in 2026-03-01; now by default: `TIME`"},
		&ucli.StringFlag{Name: "rule", Usage: "dominant, sum or max: `RULE`"},
		&ucli.StringFlag{Name: "machine", Usage: "of dominant: cores, memory and GPUs, as in 64:256GiB:4: `MACHINE`"},
		&ucli.StringFlag{Name: "gpu-memory", Usage: "a GPU has this `SIZE`: less of it is a share"},
		&ucli.StringFlag{Name: "core-hour", Usage: "`AMOUNT` for a core and hour"},
		&ucli.StringFlag{Name: "gib-hour", Usage: "`AMOUNT` for a GiB and hour"},
		&ucli.StringFlag{Name: "gpu-hour", Usage: "`AMOUNT` for a GPU and hour"},
		&ucli.StringSliceFlag{Name: "band", Usage: "a factor of a band, as in free=0: `BAND=FACTOR`"},
		&ucli.StringSliceFlag{Name: "class", Usage: "a factor of a class of machines: `CLASS=FACTOR`"},
		&ucli.StringFlag{Name: "grant", Usage: "`AMOUNT` that is free for each payer, each month"},
		&ucli.BoolFlag{Name: "useful-only", Usage: "charge only time whose result was kept"},
		frame.JSONFlag(),
	}
}

func rateBranches() []frame.Subcommand {
	var all []string
	for _, f := range rateFlags() {
		if name := f.Names()[0]; name != "json" {
			all = append(all, name)
		}
	}
	return []frame.Subcommand{
		{Name: "list", Summary: "show all rates", Run: listRates},
		{Name: "set", Summary: "add a rate", Flags: all, Run: setRate},
		{Name: "recharge", Summary: "charge again what ended since a time", Flags: []string{"from"}, Run: recharge},
	}
}

func listRates(c *frame.Invocation, _ []string) error {
	type line = query.RateLine
	lines, err := askAll[line](c, &query.Query{Report: query.Rates})
	if err != nil {
		return err
	}
	return printTable(c, "rates", "no rates are set: nothing is charged", []column[line]{
		{"id", true, func(l *line) string { return fmt.Sprint(l.ID) }},
		{"group", false, func(l *line) string { return l.Group }},
		{"from", false, func(l *line) string { return day(l.From) }},
		{"rule", false, func(l *line) string { return l.Rule }},
		{"core_hour", true, func(l *line) string { return l.CoreHour.String() }},
		{"gib_hour", true, func(l *line) string { return l.GiBHour.String() }},
		{"gpu_hour", true, func(l *line) string { return l.GPUHour.String() }},
		{"grant", true, func(l *line) string { return l.MonthlyGrant.String() }},
		{"machine", false, machineText},
		{"factors", false, func(l *line) string {
			return strings.TrimSpace(query.FactorText(l.Bands) + " " + query.FactorText(l.Classes) +
				yes(l.UsefulOnly, " useful only"))
		}},
		{"set_by", false, func(l *line) string { return l.By }},
	}, lines)
}

func machineText(l *query.RateLine) string {
	if l.Cores == 0 {
		return ""
	}
	text := fmt.Sprintf("%g:%v", l.Cores, roost.Bytes(l.Memory))
	if l.GPUs > 0 {
		text += fmt.Sprintf(":%d", l.GPUs)
	}
	return text
}

func setRate(c *frame.Invocation, _ []string) error {
	l := &query.RateLine{Group: c.StringFlag("group"), Rule: c.StringFlag("rule"), UsefulOnly: c.Flag("useful-only")}
	if l.Rule == "" {
		return frame.UsageErrorf("say how it charges: --rule dominant, sum or max")
	}
	for flag, to := range map[string]*query.Units{"core-hour": &l.CoreHour, "gib-hour": &l.GiBHour,
		"gpu-hour": &l.GPUHour, "grant": &l.MonthlyGrant} {
		amount, err := unitsFlag(c, flag)
		if err != nil {
			return err
		}
		*to = amount
	}
	from, err := c.TimeFlag("from", c.Now())
	if err == nil {
		l.From = query.Time(accounting.MillisOf(from))
		l.Bands, err = factorFlags(c, "band")
	}
	if err == nil {
		l.Classes, err = factorFlags(c, "class")
	}
	if err == nil {
		err = machineFlags(c, l)
	}
	if err != nil {
		return err
	}
	if _, err := l.Rate(); err != nil {
		return err
	}
	whose := "the pool"
	if l.Group != "" {
		whose = "group " + printable(l.Group)
	}
	return makeChange(c, &query.Change{Rate: l}, "rate", fmt.Sprintf("the rate of %s holds from %v on", whose, l.From))
}

// machineFlags reads the machine of the rule dominant.
func machineFlags(c *frame.Invocation, l *query.RateLine) (err error) {
	if text := c.StringFlag("machine"); text != "" {
		parts := strings.Split(text, ":")
		l.Cores, err = strconv.ParseFloat(parts[0], 64)
		if err == nil && len(parts) > 1 {
			l.Memory, err = sizeOf(parts[1])
		}
		if err == nil && len(parts) > 2 {
			l.GPUs, err = strconv.Atoi(parts[2])
		}
		if err != nil || len(parts) > 3 {
			return frame.UsageErrorf("--machine: %q: write cores, memory and GPUs as 64:256GiB:4", text)
		}
	}
	if text := c.StringFlag("gpu-memory"); text != "" {
		if l.GPUMemory, err = sizeOf(text); err != nil {
			return frame.UsageErrorf("--gpu-memory: %v", err)
		}
	}
	return nil
}

func sizeOf(text string) (int64, error) {
	size, err := roost.ParseBytes(text)
	return int64(size), err
}

// factorFlags reads factors, as NAME=FACTOR.
func factorFlags(c *frame.Invocation, flag string) (map[string]query.Factor, error) {
	var factors map[string]query.Factor
	for _, text := range c.StringsFlag(flag) {
		name, number, ok := strings.Cut(text, "=")
		f, err := query.ParseFactor(number)
		if !ok || err != nil {
			return nil, frame.UsageErrorf("--%s: %q: write a name and a factor with at most three decimals, as in "+
				"%s=0.5",
				flag, text, name)
		}
		if factors == nil {
			factors = map[string]query.Factor{}
		}
		factors[name] = f
	}
	return factors, nil
}

func recharge(c *frame.Invocation, _ []string) error {
	from, err := c.TimeFlag("from", c.Now())
	if err != nil {
		return err
	}
	if !c.IsFlagSet("from") {
		return frame.UsageErrorf("say since when: --from 2026-01-01")
	}
	at := query.Time(accounting.MillisOf(from))
	return makeChange(c, &query.Change{Rerate: &at}, "recharge",
		fmt.Sprintf("what ended since %v is charged again within the next minutes", at))
}
