# Completion of roost for fish. Written by: roost completion fish
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
