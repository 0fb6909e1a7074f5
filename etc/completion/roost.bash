# Completion of roost for bash. Written by: roost completion bash
_roost() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    if [ ${#COMPREPLY[@]} -eq 1 ] && [ "${COMPREPLY[0]}" = ":files" ]; then
        COMPREPLY=()
        compopt -o default
    fi
}
complete -F _roost roost
