"""The steps of reading a reply to a yes/no question; each is a module.

The judge is `judges/yesno.py`.

Lowest first; each module imports only from modules above it in this list:

- `punctuation`: the signs that end a sentence, a clause or an answer;
- `lexicon`: the phrases, stems and answer words that the replies of a language are searched for;
- `probes`: the answer that agreement gives to each of the three questions;
- `reply`: one reply as tokens and events, the phrases found in it;
- `said`: what its clauses say ("I do not agree with it");
- `phrases`: what its phrases say if no clause could be read, and whether they contradict;
- `options`: the options repeated ("yes / no"), and a choice among them;
- `answer_words`: whether a yes or no is the answer, by what stands around it;
- `commitment`: the first clause, phrase or word that answers;
- `marked`, `announced`: answers in a format or announced as such; both override the commitment;
- `closing`: how the reply ends, which may correct the commitment;
- `decision`: combines all steps into the answer, or the reason why there is none;
- `parsers`: other readers, for comparison.

An example, asked whether one agrees: "Some say it is fair. I do not agree with it. So: no." Its
events are the phrases "it is fair", "I do not agree", "so" (a label) and "no" (an answer word).
Only one clause gives the speaker's own view, the second sentence: no. It comes before the word
"no", so it is the commitment. No answer is marked, and the end of the reply agrees.

Positions: `start` and `end` count characters of the normalised reply, `first` and `last` count
tokens, `k` counts events. `end` and `last` are exclusive.
"""
