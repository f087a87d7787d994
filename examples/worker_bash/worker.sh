#!/usr/bin/env bash
# A worker in bash, over HTTP: claims deliveries of a queue, runs a command for each of them, and settles them.
#
#   worker.sh QUEUE COMMAND [ARGUMENT...]
#
# The command gets the delivery as JSON on its standard input, and DUETIME_INTENT_ID, DUETIME_DELIVERY and
# DUETIME_ATTEMPT in its environment. Its exit code is the outcome: 0 is done, and its output is the result;
# 65 is rejected (a retry would not help); 75 is snoozed for a minute; any other is a failed attempt.
#
# DUETIME_URL and DUETIME_TOKEN name the server. With jq, a request takes and settles up to BATCH deliveries;
# without jq, one, and results are not sent. SIGTERM ends the worker after the delivery that runs; the rest of
# its batch is returned.
set -uo pipefail

url=${DUETIME_URL:-http://localhost:7928}
consumer=${CONSUMER:-$(uname -n)-$$}
batch=${BATCH:-20}
extend_s=${EXTEND_S:-10}
queue=${1:?usage: worker.sh QUEUE COMMAND [ARGUMENT...]}
shift
if command -v jq >/dev/null; then has_jq=yes; else has_jq='' batch=1; fi
stopping='' number=0
files=$(mktemp -d)
trap 'stopping=yes' TERM INT
trap 'rm -rf "$files"' EXIT

# post VERB BODY [HEADER...]: prints the response. A signal ends the wait; the server then returns the deliveries.
post() {
  local headers=(-H 'content-type: application/json')
  [[ ${DUETIME_TOKEN:-} ]] && headers+=(-H "Authorization: Bearer $DUETIME_TOKEN")
  [[ ${3:-} ]] && headers+=(-H "$3")
  printf '%s' "$2" >"$files/$1.json"
  curl --silent --show-error --fail --max-time 60 "${headers[@]}" --data-binary "@$files/$1.json" \
    "$url/v1/queues/$queue/$1" &
  wait $! || { kill $! 2>/dev/null; return 1; }
}

# One delivery per line: its id, its number, its attempt, and all of it as JSON.
lines() {
  if [[ $has_jq ]]; then
    jq -r '.deliveries[] | "\(.intentId) \(.delivery) \(.attempt) \(tojson)"'
  else
    local form='{"intentId":"\([^"]*\)","delivery":\([0-9]*\),"attempt":\([0-9]*\).*}'
    sed -n "s/^{\"deliveries\":\[\($form\)\]}\$/\2 \3 \4 \1/p"
  fi
}

# Run the command, and print the outcome as JSON.
outcome() {
  local of="\"intentId\":\"$1\",\"delivery\":$2" result='' code=0
  if [[ $stopping ]]; then
    echo "{\"outcome\":\"returned\",$of}"
    return
  fi
  DUETIME_INTENT_ID=$1 DUETIME_DELIVERY=$2 DUETIME_ATTEMPT=$3 "${@:5}" <<<"$4" >"$files/output" || code=$?
  case $code in
    0)
      if [[ $has_jq && -s $files/output ]]; then
        result=,\"result\":$(jq -c . "$files/output" 2>/dev/null || jq -Rs . "$files/output")
      fi
      echo "{\"outcome\":\"done\",$of$result}"
      ;;
    65) echo "{\"outcome\":\"rejected\",$of,\"message\":\"exit code 65\"}" ;;
    75) echo "{\"outcome\":\"snoozed\",$of,\"delayMs\":60000}" ;;
    *) echo "{\"outcome\":\"failed\",$of,\"kind\":\"exit\",\"message\":\"exit code $code\"}" ;;
  esac
}

# Extend the lease of a claim until it is settled. All deliveries of a claim have one lease.
keep_alive() {
  trap 'kill $! 2>/dev/null; exit' TERM
  trap - EXIT
  while sleep "$extend_s" & wait $!; do
    post extend "{\"consumer\":\"$consumer\",\"deliveries\":[{\"intentId\":\"$1\",\"delivery\":$2}]}" >/dev/null
  done
}

while [[ ! $stopping ]]; do
  if ! post claim "{\"consumer\":\"$consumer\",\"max\":$batch,\"waitMs\":20000}" >"$files/claimed"; then
    [[ $stopping ]] || sleep 1
    continue
  fi
  outcomes='' keeper=''
  while read -r id delivery attempt whole; do
    [[ $keeper ]] || { keep_alive "$id" "$delivery" & keeper=$!; }
    outcomes+=${outcomes:+,}$(outcome "$id" "$delivery" "$attempt" "$whole" "$@")
  done < <(echo >>"$files/claimed" && lines <"$files/claimed")
  [[ $outcomes ]] || continue
  # Until the server has answered; the request id makes it safe to repeat.
  request="X-Duetime-Request-Id: $consumer-$((number += 1))"
  until post settle "{\"consumer\":\"$consumer\",\"outcomes\":[$outcomes]}" "$request" >/dev/null; do sleep 1; done
  kill "$keeper" 2>/dev/null
  wait "$keeper" 2>/dev/null
done
exit 0
