package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func sshareCommand() *frame.Command {
	return &frame.Command{
		Name: "sshare", Group: frame.GroupSlurm, Summary: "show shares and use as Slurm does", RawArgs: true,
		MaxOperands: -1, Run: runSshare,
		Synopsis: "[-a] [-A ACCOUNTS] [-u USERS] [-U] [-l] [-n] [-p | -P] [-o FIELDS]",
		Description: "Lists what accounts and users have used of the pool and what is due to them, in the form of " +
			"sshare of Slurm. roost shares says more.",
		Examples: []frame.Example{
			{Line: "sshare -U", Description: "your own shares"}, {Line: "sshare -a -P", Description: "everybody's"},
		},
	}
}

// shareFormat are the fields that sshare prints.
const shareFormat = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"

func shareFields() []fieldColumn {
	return []fieldColumn{{"Account", 20, true}, {"User", 10, false}, {"RawShares", 10, false},
		{"NormShares", 11, false}, {"RawUsage", 11, false}, {"NormUsage", 11, false}, {"EffectvUsage", 13, false},
		{"FairShare", 10, false}, {"LevelFS", 10, false}, {"GrpTRESMins", 30, false}, {"TRESRunMins", 30, false},
		{"Cluster", 10, false}, {"Partition", 12, false}}
}

func runSshare(c *frame.Invocation) error {
	required := getopt.Required
	given, operands, answered, err := parseOptions(c, append(printOptions(),
		getopt.Option{Name: "all", Letter: 'a'}, getopt.Option{Name: "accounts", Letter: 'A', Argument: required},
		getopt.Option{Name: "users", Letter: 'u', Argument: required}, getopt.Option{Name: "Users", Letter: 'U'},
		getopt.Option{Name: "long", Letter: 'l'}, getopt.Option{Name: "noheader", Letter: 'h'},
		getopt.Option{Name: "format", Letter: 'o', Argument: required}, getopt.Option{Name: "partition", Letter: 'm'},
		getopt.Option{Name: "clusters", Letter: 'M', Argument: required},
		getopt.Option{Name: "verbose", Letter: 'v'}))
	if err != nil || answered {
		return err
	}
	if len(operands) > 0 {
		return fail(c, "Unknown arguments:\n "+strings.Join(operands, "\n "))
	}
	format, _ := getopt.Last(given, "format")
	standard := shareFormat
	if has(given, "long") {
		standard = "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,grptresmins," +
			"tresrunmins"
	}
	t := &fieldTable{}
	t.setForm(given)
	if unknown := t.choose(cmp.Or(format, standard), shareFields()); unknown != "" {
		return fail(c, fmt.Sprintf("Invalid field requested: %q", unknown))
	}
	var report ledger.ShareReport
	if err := admin.CellObjects(c, "shares", &report); err != nil {
		return failWith(c, err)
	}
	known, err := associations(c, nil)
	if err != nil {
		return failWith(c, err)
	}
	for _, a := range known { // who has used nothing yet
		if a.user != "" && !slices.ContainsFunc(report.Submitters, func(s ledger.SubmitterUsage) bool {
			return s.User == a.user && cmp.Or(s.Group, ownGroup(s.User)) == a.account
		}) {
			report.Submitters = append(report.Submitters, ledger.SubmitterUsage{User: a.user, Group: a.account})
		}
	}
	users, _ := getopt.Last(given, "users")
	accounts, _ := getopt.Last(given, "accounts")
	wanted := list(users)
	if len(wanted) == 0 && !has(given, "all") {
		wanted = []string{frame.LoginName()}
	}
	t.print(c.Stdout, shareRows(&report, wanted, list(accounts), has(given, "Users")))
	return nil
}

// shareRows are the rows of the root, of accounts, and of the users below them.
func shareRows(report *ledger.ShareReport, users, accounts []string, onlyUsers bool) (rows []map[string]string) {
	total := 0.0
	byAccount := map[string][]ledger.SubmitterUsage{}
	for _, s := range report.Submitters {
		total += s.CoreHours
		account := cmp.Or(s.Group, ownGroup(s.User))
		byAccount[account] = append(byAccount[account], s)
	}
	names := make([]string, 0, len(byAccount))
	for name := range byAccount {
		names = append(names, name)
	}
	slices.Sort(names)
	row := func(account, user, shares string, share, hours float64) {
		used := 0.0
		if total > 0 {
			used = hours / total
		}
		fair := 0.0
		if share > 0 {
			fair = math.Pow(2, -used/share)
		}
		rows = append(rows, map[string]string{"Account": account, "User": user, "RawShares": shares,
			"NormShares": fmt.Sprintf("%.6f", share), "RawUsage": fmt.Sprintf("%.0f", hours*3600),
			"NormUsage": fmt.Sprintf("%.6f", used), "EffectvUsage": fmt.Sprintf("%.6f", used),
			"FairShare": fmt.Sprintf("%.6f", fair)})
		if user == "" { // only users have one
			rows[len(rows)-1]["FairShare"] = ""
		}
	}
	if !onlyUsers {
		row("root", "", "", 1, total)
	}
	for _, account := range names {
		if len(accounts) > 0 && !slices.Contains(accounts, account) {
			continue
		}
		share, hours := 0.0, 0.0
		for _, s := range byAccount[account] {
			share, hours = share+s.PoolShare, hours+s.CoreHours
		}
		indent := "  "
		if !onlyUsers {
			row(" "+account, "", "1", share, hours)
		} else {
			indent = ""
		}
		for _, s := range byAccount[account] {
			if len(users) == 0 || slices.Contains(users, s.User) {
				row(indent+account, s.User, "1", s.PoolShare, s.CoreHours)
			}
		}
	}
	return rows
}
