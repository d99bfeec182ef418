// Package tl1server is the TL1 front end of an emulated switch: the dialect of
// Polatis network interface cards, with their command set, error codes, texts
// and parse-error offsets as far as they are publicly known, or that of Calient
// S-series or Glimmerglass units, as the personality says.
//
//	srv := &tl1server.Server{Device: dev}
//	l, err := net.Listen("tcp", "127.0.0.1:3082")
//	...
//	err = srv.Serve(ctx, l)
//
// Each session has its own login and its own answer to whether autonomous
// messages are wanted (they are on after login until OPR-ARC-EQPT::REPMGR
// inhibits them). An autonomous message may come between a command and its
// reply but never inside a message. Commands of one session are answered in
// order; sessions do not wait for each other.
//
// A client that does not read delays nobody but itself: what the device reports
// meanwhile is dropped beyond a small queue. Serve returns promptly whatever its
// clients do.
//
// # What is decided here because nobody has published it
//
// Syntax:
//
//   - A reply to a command without a CTAG, or with one that cannot be read,
//     carries CTAG 0. A CTAG is a quoted string or letters, digits and -_. of
//     any length.
//   - A field that cannot be read is denied with the code of the field (IICM,
//     IITA, IIAC, IICT, IIPG, IPNV) and the offset where it begins. An empty
//     command is one without a verb.
//   - A TID without quotes is a letter, then letters, digits, underscores and
//     dots; anything else must be quoted even where it is the SID.
//   - What is checked first: TID, CTAG, login, verb, permission, AID, blocks.
//   - A command of more than 64 KiB is denied with SSRE and CTAG 0, and what
//     follows its terminator is read as usual.
//   - A negative number is accepted without its parentheses, too.
//
// Matrix and ports:
//
//   - RTRV-PATCH gives no line for a port that is not connected, and deleting
//     such a port completes. Lines are in the order of the list, or of ingress.
//   - A list with a bad, repeated or failed port is refused as a whole, and so
//     are labels and settings of which one is not valid. Codes: IDNV "Invalid
//     OXC port: P" and "Duplicate OXC port: P", SROF "Port P has failed", SSRE
//     for more pairs than the device takes.
//   - The egress named first on a two-sided unit is an invalid port.
//   - DLT-PATCH with a comma (IIAC) or a general block (IIPG) is denied.
//   - A busy port on a unit that does not take over is denied with IDNC and
//     the text "Port P is in use by A,B", also with FRCD.
//   - Removals take no time and are acknowledged at once; what is made is
//     acknowledged before or after it settles as the personality says, and so
//     is INIT-SYS phase 1.
//   - Labels may have up to 128 printable characters, as in the YANG model; the
//     empty one removes. RTRV-PORT-LABEL lists the ports that have one.
//   - RTRV-PORT-FLAP gives "P:off,on,cycles" for ports with a programme; a
//     start without one is denied with SNVS, and an egress port of a two-sided
//     unit is invalid. RTRV-PORT-SHUTTER does not show what a programme does.
//   - Without variable attenuators their commands are unknown (IICM). With them
//     (optics.voa_max_db) SET-PORT-ATTEN wants a MODE, and a LEVEL for ABS, CONV
//     and REL; REFS has one port for all, or one for each, and goes with REL only.
//     RTRV-PORT-ATTEN leaves the level and the reference empty where the mode has
//     none. PARAMETER=CONFIG says CONVERGED.
//
// Monitors, alarms, autonomous messages:
//
//   - The reverse monitors are there and read their floor.
//   - Power that is beyond a threshold when that is set is not a crossing. With
//     CONT the return is reported, too, as cleared. RTRV-STATE-PMON shows the
//     mode of the LOS alarm, joined by & with TRIGGERED if any has come.
//   - All power alarms are major and affect service. Their report is
//     "PORT-P:MJ,LOS,SA:\"text\"", CL in the place of MJ when cleared; that of
//     an event is "PORT-P:PORT,TC:\"text\"". Public clients that never inhibit
//     reports would take a line that begins with the bare number for data.
//   - What a command brings about is reported after its reply, unless that
//     waits for the light. No report comes between ACT-USER and its reply.
//
// Sessions and users:
//
//   - A second ACT-USER is denied with SNVS and the text "Already logged in".
//   - The inactivity time-out is in minutes and counts from the last reply; a
//     session that has idled is logged out and stays connected unless the
//     personality says that it is closed. Nobody is timed out before login.
//   - A session too many, or during a reboot, is accepted and closed.
//   - A session keeps the rights that it logged in with when its account is
//     changed, and ends when somebody else deletes or renames it. The last
//     administrator cannot be removed (SROF).
//
// # Calient and Glimmerglass
//
// What is published are the commands, the form of their replies and a few words of
// refusals. The personality has: prompt, echo, greet, block, notice, two_step, shelf and slot,
// fail, locks, and busy. Decided for both:
//
//   - A command without a CTAG is answered with CTAG 0; before login the text is "Login Not
//     Active" (PLNA). Refusals say "Invalid" or "Failed", which clients look for; the
//     codes are those of GR-831.
//   - A busy port is denied with IDNC and "in use by" where the personality denies.
//   - A port that is named in fail is dark, and its connections are listed as failed.
//     That they were made is acknowledged with COMPLD.
//   - No autonomous messages of theirs are known; set quiet.
//   - The table of connections with names and owners is kept in the device's notes, beside the
//     cross-connects. What it does not know is shown as a one-way connection without an owner.
//   - There are no INIT-SYS, users, clock, shutters or labels: IICM.
//
// Calient:
//
//   - A login gives "USER:USER,N" with N 1 to 3 for VIEW, USER and ADMIN.
//   - A block of a long reply ends with ; like the last, and has no prompt behind it.
//   - A connection that is entered and not activated keeps its ports busy, is listed with
//     OC=FAIL and has CONNSTATE NONE. ACT-CRS of an active one completes; CANC-CRS of one that
//     is not is denied with SNVS, and so is DLT-CRS of an active one with two_step.
//   - The connection is found in the first, second or third place of block 1, which public
//     clients use each. RTRV-CRS of a name that is not there completes without a line.
//   - ENT-CRS of what is there already is denied as in use. A name has letters, digits and
//     -_.> and 64 characters at most; it must be new.
//   - The bulk commands are unknown (IICM), as their syntax is not published.
//
// Glimmerglass:
//
//   - With greet the prompt comes before the first command. The echo is that of a
//     terminal: no line end before the reply, and none at all of ACT-USER.
//   - A block ends with > and the prompt. Names are IN1, OUT1 or the label; CONNNAME is the
//     name of the input, CONNLOCKUSER who made or has locked the connection.
//   - RTRV-CRS-FIBER lists a connection once, where the first of its ports is in the list.
//     RTRV-PORT-POWER gives "GGN:PORTID=N,PORTNAME=X,POWER=P".
//   - OPMODE=sync acknowledges when the light has settled, async at once; without it as the
//     personality says. ENT-CRS-FIBER of what is there already completes.
//   - A connection that is locked by another is denied with SNVS and "is locked by".
//   - ED-PARAM knows PowerMonitoringPeriod, 1 to 3600, and nothing follows from it.
package tl1server
