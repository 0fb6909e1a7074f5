package reports

import (
	"cmp"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func sacctmgrCommand() *frame.Command {
	return &frame.Command{
		Name: "sacctmgr", Group: frame.GroupSlurm, Summary: "show accounts and users as Slurm does", RawArgs: true,
		MaxOperands: -1, Run: runSacctmgr,
		Synopsis: "[-n] [-p | -P] show user|account|assoc|qos|cluster [NAME…] [where KEY=VALUE…] [withassoc] " +
			"[format=FIELDS]",
		Description: "Lists which users may charge which groups, in the form of sacctmgr of Slurm. It changes " +
			"nothing: roost group and roost quota do.",
		Examples: []frame.Example{
			{Line: "sacctmgr -n -P show assoc where user=ann format=account",
				Description: "the groups that ann may charge"},
			{Line: "sacctmgr show qos", Description: "the only QOS"},
		},
	}
}

// association is a user who may charge an account. Without a user it is the account's.
type association struct{ account, user string }

// associations are those of the pool. Every user may charge each group. In a pool without
// groups the account of a user is the Unix group.
func associations(c *frame.Invocation, users []string) (list []association, err error) {
	var groups []admin.AttributedObject[ledger.AccountingGroup]
	if err := admin.CellObjects(c, string(ledger.KindGroup), &groups); err != nil {
		return nil, err
	}
	var report ledger.ShareReport
	if err := admin.CellObjects(c, "shares", &report); err != nil {
		return nil, err
	}
	known := append([]string{frame.LoginName()}, users...)
	for _, s := range report.Submitters {
		known = append(known, s.User)
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(name string) bool {
		_, err := user.Lookup(name)
		return err != nil
	})
	if len(groups) == 0 {
		for _, name := range known {
			list = append(list, association{ownGroup(name), name})
		}
	}
	for _, g := range groups {
		list = append(list, association{account: g.Object.Name})
		for _, name := range known {
			list = append(list, association{g.Object.Name, name})
		}
	}
	slices.SortStableFunc(list, func(a, b association) int { return strings.Compare(a.account, b.account) })
	return list, nil
}

// ownGroup is the Unix group of a user.
func ownGroup(name string) string {
	if u, err := user.Lookup(name); err == nil {
		if g, err := user.LookupGroupId(u.Gid); err == nil {
			return g.Name
		}
	}
	return name
}

// sacctmgrFields are the fields that sacctmgr knows.
func sacctmgrFields() []fieldColumn {
	return []fieldColumn{{"User", 10, false}, {"Def Acct", 10, false}, {"Admin", 9, false}, {"Cluster", 10, false},
		{"Account", 10, false}, {"Partition", 10, false}, {"Share", 9, false}, {"Priority", 10, false},
		{"GrpJobs", 7, false}, {"GrpTRES", 13, false}, {"GrpSubmit", 9, false}, {"GrpWall", 11, false},
		{"GrpTRESMins", 13, false}, {"MaxJobs", 7, false}, {"MaxTRES", 13, false}, {"MaxTRESPerNode", 14, false},
		{"MaxSubmit", 9, false}, {"MaxWall", 11, false}, {"MaxTRESMins", 13, false}, {"QOS", 20, false},
		{"Def QOS", 9, false}, {"GrpTRESRunMins", 13, false}, {"Descr", 20, false}, {"Org", 20, false},
		{"Name", 10, false}, {"GraceTime", 10, false}, {"Preempt", 10, false}, {"PreemptMode", 11, false},
		{"Flags", 20, false}, {"UsageFactor", 11, false}, {"MaxWallDurationPerJob", 11, false},
		{"MaxJobsPU", 9, false}, {"MaxSubmitPU", 11, false}, {"MaxTRESPU", 13, false},
		{"ControlHost", 15, false}, {"ControlPort", 12, false}, {"RPC", 5, false}, {"ParentName", 10, false},
		{"DefaultAccount", 10, false}, {"DefaultQOS", 9, false}, {"Description", 20, false},
		{"Organization", 20, false}, {"Fairshare", 9, false}, {"WOPLimits", 6, false}, {"Type", 8, false},
		{"ID", 6, false}}
}

// standard fields of what sacctmgr shows.
const (
	userFormat      = "user,defacct,admin"
	userAssocFormat = userFormat + ",cluster,account,partition,share,priority,maxjobs,maxtrespernode,maxsubmit," +
		"maxwall,maxtresmins,qos,defqos"
	accountFormat = "account,descr,org"
	assocFormat   = "cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins," +
		"maxjobs,maxtres,maxtrespernode,maxsubmit,maxwall,maxtresmins,qos,defqos,grptresrunmins"
	qosFormat     = "name,priority,gracetime,preempt,preemptmode,flags,usagefactor,maxwall,maxjobspu,maxsubmitpu"
	clusterFormat = "cluster,controlhost,controlport,rpc,share,grpjobs,grptres,grpsubmit,maxjobs,maxtres,maxsubmit," +
		"maxwall,qos,defqos"
	tresFormat = "type,name,id"
)

// accountQuery is what a command line of sacctmgr asks for.
type accountQuery struct {
	*frame.Invocation
	kind      string
	names     []string
	filters   map[string][]string
	format    string
	withAssoc bool
}

func runSacctmgr(c *frame.Invocation) error {
	given, words, answered, err := parseOptions(c, append(printOptions(), getopt.Option{Name: "immediate", Letter: 'i'},
		getopt.Option{Name: "readonly", Letter: 'r'}, getopt.Option{Name: "associations", Letter: 's'},
		getopt.Option{Name: "quiet", Letter: 'Q'}, getopt.Option{Name: "verbose", Letter: 'v'},
		getopt.Option{Name: "oneliner", Letter: 'o'}))
	if err != nil || answered {
		return err
	}
	if len(words) < 2 {
		return fail(c, "too few arguments")
	}
	switch verb := strings.ToLower(words[0]); {
	case len(verb) >= 2 && (strings.HasPrefix("show", verb) || strings.HasPrefix("list", verb)):
	case verb == "version":
		fmt.Fprintln(c.Stdout, "slurm "+slurmVersion)
		return nil
	default:
		fmt.Fprintf(c.Stderr, " Accounts are changed by roost group, roost quota and roost shares: %s is not done\n",
			words[0])
		return frame.ExitError(failure)
	}
	q := &accountQuery{Invocation: c, kind: strings.ToLower(words[1]), filters: map[string][]string{},
		withAssoc: has(given, "associations")}
	if bad := q.readWords(words[2:]); bad != "" {
		fmt.Fprintf(c.Stderr, " Unknown condition: %s\n", bad)
		return frame.ExitError(failure)
	}
	t := &fieldTable{}
	t.setForm(given)
	return q.print(t)
}

// readWords reads the conditions and the format. It returns one that it does not know.
func (q *accountQuery) readWords(words []string) (unknown string) {
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		key = strings.ToLower(key)
		switch {
		case !ok && (key == "where" || key == "set"):
		case !ok && strings.HasPrefix(key, "witha"):
			q.withAssoc = true
		case !ok && (strings.HasPrefix(key, "with") || strings.HasPrefix(key, "wop") || key == "tree"):
		case !ok:
			q.names = append(q.names, list(word)...)
		case strings.HasPrefix("format", key):
			q.format = value
		case strings.HasPrefix("users", key), strings.HasPrefix("accounts", key), strings.HasPrefix("acct", key),
			strings.HasPrefix("clusters", key), strings.HasPrefix("names", key), strings.HasPrefix("partitions", key),
			strings.HasPrefix("qoslevel", key):
			q.filters[key[:1]] = append(q.filters[key[:1]], list(strings.Trim(value, `"'`))...)
		default:
			return word
		}
	}
	return ""
}

// accepts says whether a value meets the conditions of a letter.
func (q *accountQuery) accepts(letter, value string) bool {
	return len(q.filters[letter]) == 0 || slices.Contains(q.filters[letter], value)
}

// named says whether a name is among those asked for.
func (q *accountQuery) named(value string) bool {
	all := append(slices.Clone(q.names), q.filters["n"]...)
	return len(all) == 0 || slices.Contains(all, value)
}

// print prints what is asked for.
func (q *accountQuery) print(t *fieldTable) error {
	begins := func(word string) bool { return len(q.kind) > 1 && strings.HasPrefix(word, q.kind) }
	cluster, err := q.ServerName()
	if err != nil {
		return failWith(q.Invocation, err)
	}
	var rows []map[string]string
	standard := ""
	switch {
	case begins("users"):
		standard = userFormat
		if q.withAssoc {
			standard = userAssocFormat
		}
		rows, err = q.userRows(cluster)
	case begins("accounts"):
		standard = accountFormat
		rows, err = q.accountRows(cluster)
	case begins("associations"):
		standard = assocFormat
		rows, err = q.associationRows(cluster, true)
	case begins("qos"):
		standard = qosFormat
		if q.named("normal") {
			rows = []map[string]string{{"Name": "normal", "Priority": "0", "GraceTime": "00:00:00",
				"PreemptMode": "cluster", "UsageFactor": "1.000000"}}
		}
	case begins("clusters"):
		standard = clusterFormat
		if q.named(cluster) && q.accepts("c", cluster) {
			rows = []map[string]string{{"Cluster": cluster, "Name": cluster, "ControlHost": cluster,
				"ControlPort": "0", "RPC": "10752", "Share": "1", "QOS": "normal", "Def QOS": "normal"}}
		}
	case begins("tres"):
		standard = tresFormat
		for i, name := range []string{"cpu", "mem", "energy", "node", "billing"} {
			rows = append(rows, map[string]string{"Type": name, "ID": fmt.Sprint(i + 1)})
		}
	default:
		fmt.Fprintf(q.Stderr, "No valid entity in list command\nInput line must include \"Account\", \"Association\", "+
			"\"Cluster\", \"QOS\", \"TRES\" or \"User\"\n")
		return frame.ExitError(failure)
	}
	if err != nil {
		return failWith(q.Invocation, err)
	}
	if unknown := t.choose(cmp.Or(q.format, standard), sacctmgrFields()); unknown != "" {
		fmt.Fprintf(q.Stderr, " Unknown field '%s'\n", unknown)
		return frame.ExitError(failure)
	}
	t.print(q.Stdout, rows)
	return nil
}

// associationRows are the rows of associations, with those of the accounts themselves.
func (q *accountQuery) associationRows(cluster string, withAccounts bool) (rows []map[string]string, err error) {
	all, err := associations(q.Invocation, slices.Concat(q.names, q.filters["u"], q.filters["n"]))
	for _, a := range all {
		if a.user == "" && (!withAccounts || len(q.filters["u"]) > 0) || !q.accepts("u", a.user) ||
			!q.accepts("a", a.account) || !q.accepts("c", cluster) {
			continue
		}
		rows = append(rows, map[string]string{"Cluster": cluster, "Account": a.account, "User": a.user, "Share": "1",
			"Fairshare": "1", "QOS": "normal", "Def QOS": "normal", "DefaultQOS": "normal"})
	}
	return rows, err
}

// userRows are the rows of users: one for each, or one for each association.
func (q *accountQuery) userRows(cluster string) (rows []map[string]string, err error) {
	all, err := q.associationRows(cluster, false)
	seen := map[string]string{} // the first account of each
	for _, row := range all {
		name := row["User"]
		if !q.named(name) {
			continue
		}
		first, known := seen[name]
		if !known {
			first = row["Account"]
			seen[name] = first
		}
		if known && !q.withAssoc && !strings.Contains(strings.ToLower(q.format), "acc") {
			continue
		}
		row["Def Acct"], row["DefaultAccount"], row["Admin"] = first, first, "None"
		rows = append(rows, row)
	}
	return rows, err
}

// accountRows are the rows of accounts.
func (q *accountQuery) accountRows(cluster string) (rows []map[string]string, err error) {
	all, err := q.associationRows(cluster, true)
	seen := map[string]bool{}
	for _, row := range all {
		name := row["Account"]
		if !q.named(name) || seen[name] && !q.withAssoc {
			continue
		}
		seen[name] = true
		row["Descr"], row["Org"], row["Description"], row["Organization"] = name, name, name, name
		rows = append(rows, row)
	}
	return rows, err
}
