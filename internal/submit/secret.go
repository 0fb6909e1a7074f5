package submit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// secretSettings are the settings of a secret block.
var secretSettings = []string{"on_change", "signal", "env"}

const (
	secretExample  = "secret \"db\" {}"
	secretNameHint = "A name has letters, digits, _, - and ., begins with a letter or a digit, and has at most 64 " +
		"characters; that of a group's has the group in front: " + secretExample + ", secret \"physics/db\" {}."
	onChangeHint = "It says what is done with running tasks when the secret gets a new version."
	variableHint = "It is the variable of the environment that has the value, too: env = \"DB_PASSWORD\". A name has " +
		"letters, digits and _, and does not begin with a digit."
	signalHint = "It is the signal that the program gets when the new version is in its file: signal = \"HUP\"."
)

// readSecrets reads the secret blocks: the names of values that the tasks get. The values
// are set with roost secret, and are never in a job file.
func (b *jobBuilder) readSecrets() {
	var list []classad.Value
	lines := map[string]int{}
	for _, block := range b.body.Blocks {
		if block.Type != "secret" {
			continue
		}
		if ad := b.readSecret(block, lines); ad != nil {
			list = append(list, classad.AdOf(ad))
		}
		if len(list) > roost.MaxJobSecrets {
			b.reportProblem(block.TypeRange, "there are too many secrets", fmt.Sprintf(
				"A job has at most %d. Put several values into one secret.", roost.MaxJobSecrets))
			return
		}
	}
	if len(list) > 0 {
		b.ad.SetValue(roost.AttrSecrets, classad.ListValue(list...))
	}
	b.checkSecretVariables()
}

// readSecret reads one block. lines has the lines of the names so far.
func (b *jobBuilder) readSecret(block *hclsyntax.Block, lines map[string]int) *classad.Ad {
	if len(block.Labels) != 1 {
		b.reportProblem(block.TypeRange, "a secret has one name",
			"Write it in quotes behind the word: "+secretExample+".")
		return nil
	}
	at := block.LabelRanges[0]
	name, err := roost.ParseSecretName(block.Labels[0])
	if err != nil {
		b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a secret", truncateText(block.Labels[0])),
			secretNameHint)
		return nil
	}
	if line, twice := lines[name.Name]; twice {
		b.reportProblem(at, fmt.Sprintf("two secrets would be the file %q", name.Name),
			fmt.Sprintf("The other block is on line %d. Remove one of them.", line))
		return nil
	}
	lines[name.Name] = at.Start.Line
	if !b.parser.refuseUnknown(block, "a secret", secretSettings, nil) {
		return nil
	}
	inner, ad := b.inBlock(block), classad.New()
	ad.SetString(roost.AttrName, name.Name)
	if name.Group != "" {
		ad.SetString(roost.AttrSecretGroup, name.Group)
	}
	inner.readChoice(ad, roost.AttrOnChange, "on_change", jobad.OnChangeNames(), onChangeHint)
	onChange, _ := ad.Str(roost.AttrOnChange)
	if onChange == jobad.OnChangeRestart && !b.isService() {
		b.reportProblem(block.Body.Attributes["on_change"].NameRange, "only tasks of services are started again",
			"Use \"signal\" or \"none\", or add a block "+serviceExample+" to the job.")
	}
	signal, at, given := inner.constantText("signal", signalHint)
	switch {
	case !given && onChange == jobad.OnChangeSignal:
		b.reportProblem(block.Body.Attributes["on_change"].NameRange, "the secret says no signal", signalHint)
	case given && onChange != jobad.OnChangeSignal:
		b.reportProblem(at, "the signal is never sent", "Add on_change = \"signal\", or remove signal.")
	case given:
		number, err := roost.SignalNumber(signal)
		if err != nil {
			b.reportProblem(at, fmt.Sprintf("%q is no signal that can be used here", truncateText(signal)), signalHint)
		}
		ad.SetInt(roost.AttrSignal, int64(number))
	}
	inner.readSecretVariable(ad)
	return ad
}

// readSecretVariable reads which variable of the environment has the secret, too.
func (b *jobBuilder) readSecretVariable(ad *classad.Ad) {
	name, at, ok := b.constantText("env", variableHint)
	if !ok {
		return
	}
	if err := roost.CheckSecretVariable(name); err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		b.reportProblem(at, fmt.Sprintf("%q cannot be the variable of a secret", truncateText(name)),
			strings.ToUpper(why[:1])+why[1:]+". Write for instance env = \"DB_PASSWORD\".")
		return
	}
	ad.SetString(roost.AttrVariable, name)
}

// checkSecretVariables refuses two values of one variable, and checkpoints of processes
// whose environment has a secret.
func (b *jobBuilder) checkSecretVariables() {
	lines := map[string]int{}
	for _, block := range b.body.Blocks {
		a := block.Body.Attributes["env"]
		if block.Type != "secret" || a == nil || len(block.Labels) != 1 {
			continue
		}
		name, at, ok := b.inBlock(block).constantText("env", variableHint)
		if !ok {
			continue
		}
		own, _ := b.ad.Strings(roost.AttrEnvironment)
		switch line, twice := lines[name]; {
		case twice:
			b.reportProblem(at, fmt.Sprintf("the variable %s has two secrets", truncateText(name)),
				fmt.Sprintf("The other one is on line %d. Give one of them another name.", line))
		case slices.ContainsFunc(own, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }):
			b.reportProblem(at, fmt.Sprintf("the environment sets the variable %s, too", truncateText(name)),
				"Remove it there, or give the secret another variable.")
		case savesProcesses(b.ad) && len(lines) == 0:
			b.reportProblem(b.innerBlock("checkpoint").TypeRange, "a checkpoint would have a secret",
				fmt.Sprintf("An image of the processes has their environment, and so the secret in %s. Remove env, "+
					"and read the file in %s; or let the program save its own state: method = \"self\".",
					truncateText(name), roost.SecretsDir))
		default:
			warnUser(b.parser, at, "a secret in the environment is easily seen",
				fmt.Sprintf("Every program that the task starts has it, and a crash report may. The file %s/%s has "+
					"the same value, and its new versions.", roost.SecretsDir,
					path.Base(block.Labels[0])))
		}
		lines[name] = at.Start.Line
	}
}

// savesProcesses reports whether the job asks for checkpoints that are images of its
// processes.
func savesProcesses(ad *classad.Ad) bool {
	on, _ := ad.Bool(roost.AttrCheckpoint)
	own, _ := ad.Bool(roost.AttrCheckpointSelf)
	return on && !own
}

// warnUser tells the user of something that is no mistake.
func warnUser(p *fileParser, at hcl.Range, summary, detail string) {
	d := newDiagnostic(&at, summary, detail)
	d.Severity = hcl.DiagWarning
	p.report(d)
}
