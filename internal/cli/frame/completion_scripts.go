package frame

// CompletionScripts holds the script for each shell. All of them ask "roost words" for
// what may stand next, so that they never need to change.
func CompletionScripts() map[string]string {
	return map[string]string{
		"bash": `# Completion of roost for bash. Written by: roost completion bash
_roost() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    if [ ${#COMPREPLY[@]} -eq 1 ] && [ "${COMPREPLY[0]}" = ":files" ]; then
        COMPREPLY=()
        compopt -o default
    fi
}
complete -F _roost roost
`,
		"zsh": `#compdef roost
# Completion of roost for zsh. Written by: roost completion zsh
_roost() {
    local -a lines words_found
    local line
    lines=("${(@f)$("${words[1]}" words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "${lines[1]}" == ":files" ]]; then
        _files
        return
    fi
    for line in $lines; do
        words_found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe 'roost' words_found
}
if [ "$funcstack[1]" = "_roost" ]; then
    _roost "$@"
else
    compdef _roost roost
fi
`,
		"fish": `# Completion of roost for fish. Written by: roost completion fish
function __roost_words
    set -l tokens (commandline -opc) (commandline -ct)
    set -l found ($tokens[1] words -- $tokens[2..-1] 2>/dev/null)
    if test "$found[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c roost -f -a '(__roost_words)'
`,
	}
}
