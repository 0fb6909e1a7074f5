package importlint

import "strings"

// retiredWords are words that no identifier contains, because the field has a standard
// term for what they named. The value is that term.
func retiredWords() map[string]string {
	words := map[string]string{}
	for _, line := range strings.Split(retiredTable, "\n") {
		term, list, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, w := range strings.Fields(list) {
			words[w] = strings.TrimSpace(term)
		}
	}
	return words
}

// retiredTable has a standard term in each line, and behind it the words that it
// replaces.
const retiredTable = `
deadline heap: agenda
policy update: announce announcement
no-fit cache: barren spared
accounting, records: book books
sandbox: box boxed boxes jail
violation: breach
archive: bury burial buried
gang part: cast
job event: inscribe inscriptions
device: cards
peer schedd: neighbour neighbours nextdoor
conflict: contend rival rivals rivalry
blocked, infeasible: doom doomed
certificate authority: doorway
effect runner: errands
vacate: evacuate unleave
pending grant: flight flights promise promises prospect
start estimate: foresee foretell foretold
cancel preemption: forsake disinherit
preemptor: heir heirs inherit
infeasible: hopeless
preemption search: hunt hunted
preemption candidate: quarry quarries prey preys
machine table: ground
owner schedule: habit haunt haunted
adapter: hand hands mind minds
retain, keep on disk: keep kept
join request: knock
preemptible: larder
enforcer: lend lender lending lent unlend
license: licence licences
send queue: mailbox outbox
token issue: mint
command: obey
self-checkpoint: ownsave
admin command: petition
mutant: plant
suspended: parked unpark
fault fuzzing: storm
fault: weather strike
leader tracker: pursuit
report: said told
enroll, commit, resolve: settle
starter: shim
observation: sight sighting
pending vacates: scene scenes
limit: squeeze squeezed
state: stand stands standing stood
unstarted: standStill
anonymous connection: stranger strangers
preemption cache: terrain
soft constraint: wish wishes
shutdown: farewell
victim: ruin ruined
script: story
capacity: vacancy
`
