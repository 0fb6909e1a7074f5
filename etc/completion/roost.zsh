#compdef roost
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
