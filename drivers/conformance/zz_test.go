package conformance_test
import ("testing";"os";"context";"encoding/json"
"github.com/ocslab/ocslab/drivers/conformance";"github.com/ocslab/ocslab/drivers"
"github.com/ocslab/ocslab/emulator";"github.com/ocslab/ocslab/lab";"github.com/ocslab/ocslab/ocs";"github.com/ocslab/ocslab/internal/secret")
func TestZZ(t *testing.T){
 model:=os.Getenv("MODEL"); if model=="" {model="polatis-6000-32x32"}
 p,_:=emulator.LoadPersonality(model)
 e,err:=lab.Emulation{Personality:p}.Start(); if err!=nil{t.Fatal(err)}
 r,err:=conformance.Run(t.Context(), conformance.Config{AllPorts:os.Getenv("ALL")!="", Name:"rail0",Open:func(ctx context.Context)(ocs.Switch,error){return drivers.Open(ctx,e.URL(),drivers.Options{Password:secret.New("root")})}})
 if err!=nil{t.Fatal(err)}
 r.WriteText(os.Stdout)
 j,_:=json.Marshal(r); os.Stdout.Write(j)
}
