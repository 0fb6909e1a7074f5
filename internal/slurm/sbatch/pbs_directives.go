package sbatch

import (
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// pbsOptions are the options of #PBS lines that sbatch reads, with its own names for them
// ("--ignore-pbs" in sbatch(1)).
func pbsOptions() map[byte]string {
	return map[byte]string{'A': "account", 'J': "array", 'M': "mail-user", 'N': "job-name", 'a': "begin", 'e': "error",
		'o': "output", 'q': "partition", 't': "array"}
}

// pbsDirectives returns what the lines with #PBS mean to sbatch. What it does not know in
// them has no effect, as in Slurm.
func pbsDirectives(text string) (given []getopt.Given) {
	put := func(name, value string) {
		given = append(given, getopt.Given{Name: name, Value: value, HasValue: value != ""})
	}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "#PBS ")
		switch {
		case !ok && (strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#")):
			continue
		case !ok:
			return given
		}
		words, ok := qsub.SplitWords(withoutComment(rest))
		if !ok {
			continue
		}
		for i := 0; i < len(words); i++ {
			word := words[i]
			if len(word) < 2 || word[0] != '-' {
				continue
			}
			letter, value := word[1], word[2:]
			switch letter {
			case 'V':
				put("export", "ALL")
				continue
			case 'h':
				put("hold", "")
				continue
			}
			if value == "" && i+1 < len(words) {
				i++
				value = words[i]
			}
			if name := pbsOptions()[letter]; name != "" {
				put(name, value)
			}
			if letter == 'l' {
				given = append(given, pbsResources(value)...)
			}
		}
	}
	return given
}

// pbsResources reads the value of -l in a #PBS line.
func pbsResources(text string) (given []getopt.Given) {
	put := func(name, value string) {
		given = append(given, getopt.Given{Name: name, Value: value, HasValue: true})
	}
	for word := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "walltime":
			put("time", value)
		case "mem", "vmem":
			put("mem", strings.TrimSuffix(strings.ToUpper(value), "B"))
		case "ncpus":
			put("cpus-per-task", value)
		case "nodes":
			nodes, more, _ := strings.Cut(value, ":")
			put("nodes", nodes)
			if perNode, ok := strings.CutPrefix(more, "ppn="); ok {
				put("ntasks-per-node", perNode)
			}
		}
	}
	return given
}
