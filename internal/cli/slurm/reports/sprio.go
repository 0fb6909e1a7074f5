package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/records"
)

func sprioCommand() *frame.Command {
	return &frame.Command{
		Name: "sprio", Group: frame.GroupSlurm, Summary: "list the priorities of waiting jobs as Slurm does",
		RawArgs: true, MaxOperands: -1, Run: runSprio,
		Synopsis: "[-j IDS] [-u USERS] [-p PARTITIONS] [-h] [-l] [-n] [-o FORMAT] [-S SORT]",
		Description: "Lists the jobs that wait with their priority, which is the order among the jobs of a user. " +
			"Between users decide the shares of roost shares, and so the parts of the priority are 0.",
		Examples: []frame.Example{
			{Line: "sprio -u ann", Description: "the jobs of ann that wait"},
			{Line: "sprio -h -o '%i %Y'", Description: "numbers and priorities"},
		},
	}
}

// Formats of sprio.
const (
	sprioFormat = "%.15i %9r %.10Y %.10S"
	sprioLong   = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
)

// sprioLetters are the letters of its formats, with their titles. Parts of a priority
// that are not there are 0.
func sprioLetters() map[byte]string {
	return map[byte]string{'i': "JOBID", 'r': "PARTITION", 'u': "USER", 'Y': "PRIORITY", 'y': "PRIORITY", 'S': "SITE",
		's': "SITE", 'A': "AGE", 'a': "AGE", 'B': "ASSOC", 'b': "ASSOC", 'F': "FAIRSHARE", 'f': "FAIRSHARE",
		'J': "JOBSIZE", 'j': "JOBSIZE", 'P': "PARTITION", 'p': "PARTITION", 'Q': "QOS", 'q': "QOS", 'N': "NICE",
		'T': "TRES", 't': "TRES", 'c': "CLUSTER", 'o': "ACCOUNT", 'n': "QOSNAME"}
}

func runSprio(c *frame.Invocation) error {
	with := func(name string, letter byte) getopt.Option {
		return getopt.Option{Name: name, Letter: letter, Argument: getopt.Required}
	}
	given, operands, answered, err := parseOptions(c, []getopt.Option{with("jobs", 'j'), with("user", 'u'),
		with("partition", 'p'), with("format", 'o'), with("sort", 'S'), with("clusters", 'M'),
		{Name: "noheader", Letter: 'h'}, {Name: "long", Letter: 'l'}, {Name: "norm", Letter: 'n'},
		{Name: "weights", Letter: 'w'}, {Name: "verbose", Letter: 'v'}, {Name: "federation"}, {Name: "local"}})
	if err != nil || answered {
		return err
	}
	if len(operands) > 0 {
		return fail(c, "Unrecognized option: "+operands[0])
	}
	value := func(name string) string { text, _ := getopt.Last(given, name); return text }
	q := &jobQuery{ads: true}
	for _, text := range splitIDs(value("jobs")) {
		id, ok := parseJobID(text)
		if !ok {
			return fail(c, "Invalid job id: "+text)
		}
		q.ids = append(q.ids, id)
	}
	users, queues := list(value("user")), list(value("partition"))
	jobs, err := q.find(c)
	if err != nil {
		return failWith(c, err)
	}
	jobs = slices.DeleteFunc(jobs, func(j *records.Job) bool {
		return j.State != "PENDING" || len(users) > 0 && !slices.Contains(users, j.GetOwner()) ||
			len(queues) > 0 && !slices.Contains(queues, j.Partition())
	})
	format := value("format")
	switch {
	case format != "":
	case has(given, "long"):
		format = sprioLong
	default:
		format = sprioFormat
	}
	printPriorities(c, jobs, format, has(given, "norm"), !has(given, "noheader"), has(given, "weights"))
	return nil
}

// printPriorities prints the lines of sprio.
func printPriorities(c *frame.Invocation, jobs []*records.Job, format string, isPart, titles, weights bool) {
	prefix, parts := records.SplitFormat(format)
	letters := sprioLetters()
	line := func(value func(letter byte) string) {
		var b strings.Builder
		b.WriteString(prefix)
		for _, p := range parts {
			if letters[p.Letter] != "" {
				b.WriteString(p.Fit(document.PrintableText(value(p.Letter))))
			}
			b.WriteString(p.Suffix)
		}
		fmt.Fprintln(c.Stdout, b.String())
	}
	if titles {
		line(func(letter byte) string { return letters[letter] })
	}
	if weights { // of parts that are not there
		line(func(letter byte) string {
			if letter == 'i' {
				return "Weights"
			}
			return ""
		})
		return
	}
	node, _ := c.ServerName()
	for _, j := range jobs {
		line(func(letter byte) string {
			switch letter {
			case 'i':
				return j.ArrayID()
			case 'r':
				return j.Partition()
			case 'u':
				return j.GetOwner()
			case 'Y', 'y':
				if isPart || letter == 'y' {
					return strconv.FormatFloat(float64(j.Priority())/(1<<32-1), 'f', 9, 64)
				}
				return strconv.FormatInt(j.Priority(), 10)
			case 'c':
				return node
			case 'o':
				return j.Account()
			case 'n':
				return "normal"
			case 'T', 't':
				return ""
			}
			return "0"
		})
	}
}
