# BASH_ENV: every bash reads this first.
module() { export DEPLOYED="module $*"; }
